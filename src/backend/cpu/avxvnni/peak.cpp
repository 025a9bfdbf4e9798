// Limits of AVX-VNNI: vpdpbusd; the rest is AVX2's.
#include "backend/cpu/peak_kernels.h"

#include <immintrin.h>

namespace minfer::cpu {
namespace {

double int8_dot(int64_t rounds, int32_t* sink) {
  constexpr int kDots = 12;  // latency 5 times two pipes, within 16 registers
  __m256i acc[kDots];
  for (int i = 0; i < kDots; ++i) acc[i] = _mm256_set1_epi32(i);
  const __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-5);
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kDots; ++i) acc[i] = _mm256_dpbusd_epi32(acc[i], a, b);
  }
  for (int i = 1; i < kDots; ++i) acc[0] = _mm256_xor_si256(acc[0], acc[i]);
  *sink ^= _mm256_extract_epi32(acc[0], 0);
  return static_cast<double>(rounds) * kDots * 32 * 2;
}

double f32_fma(int64_t rounds, float* sink) { return peak_kernels_avx2().f32_fma(rounds, sink); }
uint64_t read(const std::byte* p, size_t n) { return peak_kernels_avx2().read(p, n); }

}  // namespace

const PeakKernels& peak_kernels_avxvnni() {
  static constexpr PeakKernels table = {f32_fma, int8_dot, read};
  return table;
}

}  // namespace minfer::cpu
