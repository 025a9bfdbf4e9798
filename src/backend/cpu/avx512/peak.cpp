// Limits of AVX-512: vfmadd, vpdpbusd, 64-byte loads.
#include "backend/cpu/peak_kernels.h"

#include <immintrin.h>

namespace minfer::cpu {
namespace {

constexpr int kChains = 16;  // latency 4-5 times two pipes, with slack

double f32_fma(int64_t rounds, float* sink) {
  __m512 acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kChains; ++i) acc[i] = _mm512_fmadd_ps(acc[i], a, b);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm512_add_ps(acc[0], acc[i]);
  *sink += _mm512_cvtss_f32(acc[0]);
  return static_cast<double>(rounds) * kChains * 16 * 2;
}

double int8_dot(int64_t rounds, int32_t* sink) {
  __m512i acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = _mm512_set1_epi32(i);
  const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-5);
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kChains; ++i) acc[i] = _mm512_dpbusd_epi32(acc[i], a, b);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm512_xor_si512(acc[0], acc[i]);
  *sink ^= _mm_cvtsi128_si32(_mm512_castsi512_si128(acc[0]));
  return static_cast<double>(rounds) * kChains * 64 * 2;
}

uint64_t read(const std::byte* p, size_t n) {
  __m512i acc[8];
  for (auto& x : acc) x = _mm512_setzero_si512();
  for (size_t i = 0; i < n; i += 512) {
    for (int j = 0; j < 8; ++j) acc[j] = _mm512_xor_si512(acc[j], _mm512_load_si512(p + i + 64 * j));
  }
  for (int j = 1; j < 8; ++j) acc[0] = _mm512_xor_si512(acc[0], acc[j]);
  return static_cast<uint64_t>(_mm512_reduce_add_epi64(acc[0]));
}

}  // namespace

const PeakKernels& peak_kernels_avx512() {
  static constexpr PeakKernels table = {f32_fma, int8_dot, read};
  return table;
}

}  // namespace minfer::cpu
