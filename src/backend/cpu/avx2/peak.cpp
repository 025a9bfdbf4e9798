// Limits of AVX2: vfmadd, vpmaddubsw + vpmaddwd, 32-byte loads.
#include "backend/cpu/peak_kernels.h"

#include <immintrin.h>

namespace minfer::cpu {
namespace {

constexpr int kChains = 12;  // latency 4 times two pipes, and some slack, within 16 registers

double f32_fma(int64_t rounds, float* sink) {
  __m256 acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kChains; ++i) acc[i] = _mm256_fmadd_ps(acc[i], a, b);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm256_add_ps(acc[0], acc[i]);
  *sink += _mm256_cvtss_f32(acc[0]);
  return static_cast<double>(rounds) * kChains * 8 * 2;
}

double int8_dot(int64_t rounds, int32_t* sink) {
  constexpr int kDots = 8;
  __m256i acc[kDots];
  for (int i = 0; i < kDots; ++i) acc[i] = _mm256_set1_epi32(i);
  __m256i a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(-5), ones = _mm256_set1_epi16(1);
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kDots; ++i) {
      __asm__ volatile("" : "+x"(a));  // the product must not be hoisted
      acc[i] = _mm256_add_epi32(acc[i], _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  }
  for (int i = 1; i < kDots; ++i) acc[0] = _mm256_xor_si256(acc[0], acc[i]);
  *sink ^= _mm256_extract_epi32(acc[0], 0);
  return static_cast<double>(rounds) * kDots * 32 * 2;
}

uint64_t read(const std::byte* p, size_t n) {
  __m256i acc[8];
  for (auto& x : acc) x = _mm256_setzero_si256();
  for (size_t i = 0; i < n; i += 512) {
    for (int j = 0; j < 8; ++j) {
      acc[j] = _mm256_xor_si256(acc[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(p + i + 32 * j)));
      acc[j] = _mm256_xor_si256(acc[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(p + i + 256 + 32 * j)));
    }
  }
  for (int j = 1; j < 8; ++j) acc[0] = _mm256_xor_si256(acc[0], acc[j]);
  return static_cast<uint64_t>(_mm256_extract_epi64(acc[0], 0) ^ _mm256_extract_epi64(acc[0], 1) ^
                               _mm256_extract_epi64(acc[0], 2) ^ _mm256_extract_epi64(acc[0], 3));
}

}  // namespace

const PeakKernels& peak_kernels_avx2() {
  static constexpr PeakKernels table = {f32_fma, int8_dot, read};
  return table;
}

}  // namespace minfer::cpu
