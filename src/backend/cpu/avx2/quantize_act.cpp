// Activations into the two forms the tile kernels read: q8a records and interleaved floats (matmul_kernels.h).
// Source: docs/numerics.md, "Activations for quantized weights".
#include "backend/cpu/avx2/matmul_codes-inl.h"
#include "backend/cpu/avx2/matmul_tables-inl.h"
#include "backend/cpu/matmul/interleave-inl.h"

namespace minfer::cpu::avx2 {
namespace {

using namespace ymm;

MINFER_INLINE void store_i32(uint8_t* p, int32_t v) { std::memcpy(p, &v, 4); }
MINFER_INLINE void store_f32(uint8_t* p, float v) { std::memcpy(p, &v, 4); }

MINFER_INLINE int32_t sum_i32x4(__m128i v) {
  v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
  v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1));
  return _mm_cvtsi128_si32(v);
}

// One block of one token.
MINFER_INLINE void quantize_block(const float* x, uint8_t* dst, int width, int t) {
  __m256 v[4];
  const __m256i abs_mask = _mm256_set1_epi32(0x7fffffff);
  __m256i most = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_loadu_ps(x + 8 * i);
    most = _mm256_max_epu32(most, _mm256_and_si256(_mm256_castps_si256(v[i]), abs_mask));
  }
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
  const uint32_t amax_bits = static_cast<uint32_t>(_mm_cvtsi128_si32(m));

  uint8_t* q = dst + t * kActBlock;
  float d, s;
  int32_t h0 = 0, h1 = 0;
  if (amax_bits >= 0x7f800000u || amax_bits < 0x0d800000u) {  // infinity or NaN; below 2^-100
    const uint32_t bits = amax_bits >= 0x7f800000u ? 0x7fc00000u : 0u;
    std::memcpy(&d, &bits, 4);
    s = d;
    std::memset(q, 0, kActBlock);
  } else {
    float amax;
    std::memcpy(&amax, &amax_bits, 4);
    d = amax / 127.0f;
    const __m256 id = _mm256_set1_ps(127.0f / amax);
    __m256i c[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) c[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], id));
    // Packing works per 128-bit lane; the permutation puts the 4-byte groups back in order.
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(c[0], c[1]), _mm256_packs_epi32(c[2], c[3]));
    const __m256i ordered = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    store_ymm(q, ordered);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), ordered);
    const __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    h0 = sum_i32x4(_mm256_castsi256_si128(sums));
    h1 = sum_i32x4(_mm256_extracti128_si256(sums, 1));
    s = d * static_cast<float>(h0 + h1);
  }
  const int32_t sum = h0 + h1;
  store_f32(dst + kActD * width + 4 * t, d);
  store_f32(dst + kActS * width + 4 * t, s);
  store_i32(dst + kActH * width + 4 * t,
            static_cast<int32_t>((static_cast<uint32_t>(h0) & 0xffffu) | static_cast<uint32_t>(h1) << 16));
  store_i32(dst + kActN8 * width + 4 * t, -8 * sum);
  store_i32(dst + kActN16 * width + 4 * t, -16 * sum);
  store_i32(dst + kActN127 * width + 4 * t, -127 * sum);
  store_i32(dst + kActN128 * width + 4 * t, -128 * sum);
}

}  // namespace

void quantize_act(const float* const* x, int tokens, int width, int64_t k, uint8_t* dst) {
  for (int64_t b = 0; b < k / kActBlock; ++b, dst += kActBytes * width) {
    if (tokens < width) std::memset(dst, 0, static_cast<size_t>(kActBytes * width));
    for (int t = 0; t < tokens; ++t) quantize_block(x[t] + b * kActBlock, dst, width, t);
  }
}

void interleave_act(const float* const* x, int tokens, int width, int64_t k, float* dst) {
  interleave_rows(x, tokens, width, k, dst);
}

}  // namespace minfer::cpu::avx2
