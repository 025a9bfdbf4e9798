// Activations into the two forms the tile kernels read: q8a records and interleaved floats (matmul_kernels.h).
// Source: docs/numerics.md, "Activations for quantized weights".
#include "backend/cpu/avx512/matmul_tables-inl.h"
#include "backend/cpu/avx512/matmul_tile-inl.h"

namespace minfer::cpu::avx512 {
namespace {

MINFER_INLINE void store_i32(uint8_t* p, int32_t v) { std::memcpy(p, &v, 4); }
MINFER_INLINE void store_f32(uint8_t* p, float v) { std::memcpy(p, &v, 4); }

MINFER_INLINE int32_t sum_i8x16(__m128i q) {  // exact: 16 * 127 fits everything on the way
  const __m512i v = _mm512_cvtepi8_epi32(q);
  return _mm512_reduce_add_epi32(v);
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
  if (amax_bits >= 0x7f800000u || amax_bits < 0x0d800000u) {  // infinity or NaN; below 2^-100
    const uint32_t bits = amax_bits >= 0x7f800000u ? 0x7fc00000u : 0u;
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
  const int32_t sum = h0 + h1;
  store_f32(dst + kActD * width + 4 * t, d);
  store_f32(dst + kActS * width + 4 * t, s);
  store_i32(dst + kActH * width + 4 * t, static_cast<int32_t>((static_cast<uint32_t>(h0) & 0xffffu) |
                                                              static_cast<uint32_t>(h1) << 16));
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
  for (int64_t i = 0; i < k; ++i, dst += width) {
    for (int t = 0; t < tokens; ++t) dst[t] = x[t][i];
    for (int t = tokens; t < width; ++t) dst[t] = 0.0f;
  }
}

}  // namespace minfer::cpu::avx512
