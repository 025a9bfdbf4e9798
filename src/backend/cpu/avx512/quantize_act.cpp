// Activations into the two forms the tile kernels read: q8a records and interleaved floats (matmul_kernels.h).
// Source: docs/numerics.md, "Activations for quantized weights".
#include "backend/cpu/avx512/matmul_tables-inl.h"
#include "backend/cpu/avx512/matmul_tile-inl.h"
#include "backend/cpu/matmul/interleave-inl.h"

namespace minfer::cpu::avx512 {
namespace {

MINFER_INLINE void store_i32(uint8_t* p, int32_t v) { std::memcpy(p, &v, 4); }
MINFER_INLINE void store_f32(uint8_t* p, float v) { std::memcpy(p, &v, 4); }

MINFER_INLINE int32_t sum_i8x16(__m128i q) {  // exact: 16 * 127 fits everything on the way
  const __m512i v = _mm512_cvtepi8_epi32(q);
  return _mm512_reduce_add_epi32(v);
}

constexpr uint32_t kInfinity = 0x7f800000, kTiny = 0x0d800000;  // bits of infinity and of 2^-100

MINFER_INLINE void store_scalars(uint8_t* dst, int width, int t, float d, float s, int32_t h0, int32_t h1) {
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

// One block of one token.
MINFER_INLINE void quantize_block(const float* x, uint8_t* dst, int width, int t) {
  const __m512 x0 = _mm512_loadu_ps(x), x1 = _mm512_loadu_ps(x + 16);
  const __m512i abs_mask = _mm512_set1_epi32(0x7fffffff);
  const __m512i a = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(x0), abs_mask),
                                     _mm512_and_si512(_mm512_castps_si512(x1), abs_mask));
  const uint32_t amax_bits = _mm512_reduce_max_epu32(a);
  int8_t* q = reinterpret_cast<int8_t*>(dst + t * kActBlock);
  float d, s;
  int32_t h0 = 0, h1 = 0;
  if (amax_bits >= kInfinity || amax_bits < kTiny) {
    const uint32_t bits = amax_bits >= kInfinity ? 0x7fc00000u : 0u;
    std::memcpy(&d, &bits, 4);
    s = d;
    std::memset(q, 0, kActBlock);
  } else {
    float amax;
    std::memcpy(&amax, &amax_bits, 4);
    d = amax / 127.0f;
    const __m512 id = _mm512_set1_ps(127.0f / amax);
    const __m128i q0 = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(x0, id)));
    const __m128i q1 = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(x1, id)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), q0);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16), q1);
    h0 = sum_i8x16(q0);
    h1 = sum_i8x16(q1);
    s = d * static_cast<float>(h0 + h1);
  }
  store_scalars(dst, width, t, d, s, h0, h1);
}
// Four consecutive blocks of one token, all of them ordinary; false (and nothing written) if one is not.
MINFER_INLINE bool quantize_4_blocks(const float* x, uint8_t* dst, int width, int t) {
  const __m512i abs_mask = _mm512_set1_epi32(0x7fffffff);
  __m512 v[8];
  __m512i m[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    v[2 * i] = _mm512_loadu_ps(x + 32 * i);
    v[2 * i + 1] = _mm512_loadu_ps(x + 32 * i + 16);
    m[i] = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(v[2 * i]), abs_mask),
                            _mm512_and_si512(_mm512_castps_si512(v[2 * i + 1]), abs_mask));
  }
  // Halve the 128-bit lanes of pairs until block i is lane i, then reduce within lanes.
  const __m512i m01 = _mm512_max_epu32(_mm512_shuffle_i32x4(m[0], m[1], 0x88), _mm512_shuffle_i32x4(m[0], m[1], 0xdd));
  const __m512i m23 = _mm512_max_epu32(_mm512_shuffle_i32x4(m[2], m[3], 0x88), _mm512_shuffle_i32x4(m[2], m[3], 0xdd));
  __m512i amax = _mm512_max_epu32(_mm512_shuffle_i32x4(m01, m23, 0x88), _mm512_shuffle_i32x4(m01, m23, 0xdd));
  amax = _mm512_max_epu32(amax, _mm512_shuffle_epi32(amax, _MM_PERM_BADC));
  amax = _mm512_max_epu32(amax, _mm512_shuffle_epi32(amax, _MM_PERM_CDAB));
  // amax - 2^-100 as unsigned is below infinity - 2^-100 exactly for ordinary blocks.
  const __mmask16 ordinary =
      _mm512_cmplt_epu32_mask(_mm512_sub_epi32(amax, _mm512_set1_epi32(kTiny)), _mm512_set1_epi32(kInfinity - kTiny));
  if (ordinary != 0xffff) return false;

  const __m512 limit = _mm512_set1_ps(127.0f);
  const __m512 d = _mm512_div_ps(_mm512_castsi512_ps(amax), limit);
  const __m512 id = _mm512_div_ps(limit, _mm512_castsi512_ps(amax));
  __m512i c[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i lane = _mm512_setr_epi32(4 * i, 4 * i, 4 * i, 4 * i, 4 * i, 4 * i, 4 * i, 4 * i, 4 * i, 4 * i, 4 * i,
                                           4 * i, 4 * i, 4 * i, 4 * i, 4 * i);
    const __m512 scale = _mm512_permutexvar_ps(lane, id);
    c[2 * i] = _mm512_cvtps_epi32(_mm512_mul_ps(v[2 * i], scale));
    c[2 * i + 1] = _mm512_cvtps_epi32(_mm512_mul_ps(v[2 * i + 1], scale));
  }
  // Packing works per 128-bit lane; the permutation puts the 4-byte groups back in order. 64 codes are two blocks.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i ones = _mm512_set1_epi8(1);
  alignas(64) int32_t h[32];
  alignas(64) float ds[16];
  _mm512_store_ps(ds, d);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512i packed =
        _mm512_packs_epi16(_mm512_packs_epi32(c[4 * i], c[4 * i + 1]), _mm512_packs_epi32(c[4 * i + 2], c[4 * i + 3]));
    const __m512i q = _mm512_permutexvar_epi32(order, packed);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + 2 * i * kActBytes * width + t * kActBlock),
                        _mm512_castsi512_si256(q));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + (2 * i + 1) * kActBytes * width + t * kActBlock),
                        _mm512_extracti64x4_epi64(q, 1));
    __m512i sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, q);  // four codes per lane, 16 per 128 bits
    sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
    sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_CDAB));
    _mm512_store_si512(h + 16 * i, sum);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int32_t h0 = h[8 * i], h1 = h[8 * i + 4];
    store_scalars(dst + i * kActBytes * width, width, t, ds[4 * i], ds[4 * i] * static_cast<float>(h0 + h1), h0, h1);
  }
  return true;
}

}  // namespace

void quantize_act(const float* const* x, int tokens, int width, int64_t k, uint8_t* dst) {
  const int64_t n = k / kActBlock, record = kActBytes * width;
  if (tokens < width) std::memset(dst, 0, static_cast<size_t>(n * record));
  int64_t b = 0;
  for (; b + 4 <= n; b += 4) {
    for (int t = 0; t < tokens; ++t) {
      const float* row = x[t] + b * kActBlock;
      if (quantize_4_blocks(row, dst + b * record, width, t)) continue;
      for (int i = 0; i < 4; ++i) quantize_block(row + i * kActBlock, dst + (b + i) * record, width, t);
    }
  }
  for (; b < n; ++b) {
    for (int t = 0; t < tokens; ++t) quantize_block(x[t] + b * kActBlock, dst + b * record, width, t);
  }
}

void interleave_act(const float* const* x, int tokens, int width, int64_t k, float* dst) {
  interleave_rows(x, tokens, width, k, dst);
}

}  // namespace minfer::cpu::avx512
