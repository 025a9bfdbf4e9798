// Limits of plain C++ code: what the compiler makes of it at the baseline.
#include "backend/cpu/peak_kernels.h"

#include <cstring>

namespace minfer::cpu {
namespace {

double f32_fma(int64_t rounds, float* sink) {
  float acc[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int64_t r = 0; r < rounds; ++r) {
    for (float& a : acc) a = a * 0.999f + 0.001f;
  }
  for (float a : acc) *sink += a;
  return static_cast<double>(rounds) * 8 * 2;
}

double int8_dot(int64_t rounds, int32_t* sink) {
  int32_t acc[8] = {};
  const int8_t a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < 8; ++i) acc[i] += a[i] * static_cast<int8_t>(r);
  }
  for (int32_t x : acc) *sink ^= x;
  return static_cast<double>(rounds) * 8 * 2;
}

uint64_t read(const std::byte* p, size_t n) {
  uint64_t acc[8] = {};
  for (size_t i = 0; i < n; i += sizeof acc) {
    uint64_t v[8];
    std::memcpy(v, p + i, sizeof v);
    for (int j = 0; j < 8; ++j) acc[j] ^= v[j];
  }
  uint64_t all = 0;
  for (uint64_t a : acc) all ^= a;
  return all;
}

}  // namespace

const PeakKernels& peak_kernels_generic() {
  static constexpr PeakKernels table = {f32_fma, int8_dot, read};
  return table;
}

}  // namespace minfer::cpu
