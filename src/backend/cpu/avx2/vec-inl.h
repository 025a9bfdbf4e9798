// Sixteen f32 lanes as two ymm registers: the vector type of the bodies in ../inl for AVX2, FMA and F16C.
// Everything is internal to the file that includes it.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace minfer::cpu {
namespace {

// Register budget of the attention kernels, in vectors of sixteen lanes: 12 of 16 registers, next to the operands.
constexpr int kAcc = 6;

struct F {
  __m256 a, b;
};
struct M {
  __m256 a, b;
};
struct I {
  __m256i a, b;
};

inline __m256i first_8(int n) {  // all ones in the first n lanes; any n
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline F set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline F load_n(const float* p, int n) {
  return {_mm256_maskload_ps(p, first_8(n)), n > 8 ? _mm256_maskload_ps(p + 8, first_8(n - 8)) : _mm256_setzero_ps()};
}
inline void store(float* p, F x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
inline void store_n(float* p, F x, int n) {
  _mm256_maskstore_ps(p, first_8(n), x.a);
  if (n > 8) _mm256_maskstore_ps(p + 8, first_8(n - 8), x.b);
}
inline F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
inline F and_not(F x, F y) { return {_mm256_andnot_ps(x.a, y.a), _mm256_andnot_ps(x.b, y.b)}; }
inline F neg(F x) {
  const __m256 s = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(x.a, s), _mm256_xor_ps(x.b, s)};
}
inline F abs(F x) { return and_not(set1(-0.0f), x); }
inline F copysign(F mag, F sign) {
  const __m256 s = _mm256_set1_ps(-0.0f);
  const F m = abs(mag);
  return {_mm256_or_ps(m.a, _mm256_and_ps(s, sign.a)), _mm256_or_ps(m.b, _mm256_and_ps(s, sign.b))};
}
inline F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }  // y where either is NaN
inline F rint(F x) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, kMode), _mm256_round_ps(x.b, kMode)};
}
inline M gt(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ)}; }
inline M lt(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)}; }
inline M unordered(F x) { return {_mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q), _mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q)}; }
inline M lanes(int begin, int end) {
  return {_mm256_castsi256_ps(_mm256_andnot_si256(first_8(begin), first_8(end))),
          _mm256_castsi256_ps(_mm256_andnot_si256(first_8(begin - 8), first_8(end - 8)))};
}
inline M both(M x, M y) { return {_mm256_and_ps(x.a, y.a), _mm256_and_ps(x.b, y.b)}; }
inline bool any(M x) { return _mm256_movemask_ps(_mm256_or_ps(x.a, x.b)) != 0; }
inline F select(M m, F yes, F no) { return {_mm256_blendv_ps(no.a, yes.a, m.a), _mm256_blendv_ps(no.b, yes.b, m.b)}; }
inline __m256 scale_pow2_8(__m256 p, __m256 n) {
  const __m256i i = _mm256_cvtps_epi32(n), n1 = _mm256_srai_epi32(i, 1), n2 = _mm256_sub_epi32(i, n1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256 a = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n1, bias), 23));
  const __m256 b = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n2, bias), 23));
  return _mm256_mul_ps(_mm256_mul_ps(p, a), b);
}
// p * 2^n for integral n in -150..128, in two multiplications as exp_f32 does; any other n gives some value.
inline F scale_pow2(F p, F n) { return {scale_pow2_8(p.a, n.a), scale_pow2_8(p.b, n.b)}; }
inline F dup_even(F x) { return {_mm256_moveldup_ps(x.a), _mm256_moveldup_ps(x.b)}; }
inline F dup_odd(F x) { return {_mm256_movehdup_ps(x.a), _mm256_movehdup_ps(x.b)}; }

// Lane j plus lane j + 8, then 4, 2, 1.
inline float tree_sum(F x) {
  const __m256 h = _mm256_add_ps(x.a, x.b);
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
inline float max_lane(F x) {  // Requires: no NaN
  const __m256 h = _mm256_max_ps(x.a, x.b);
  const __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}

inline F load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
// Elements at, at + kStride, ...: 16 of them.
template <int kStride>
inline F load_f16_every(const uint16_t* p, int at) {
  uint16_t t[16];
  for (int i = 0; i < 16; ++i) std::memcpy(t + i, p + i * kStride + at, 2);
  return load_f16(t);
}
inline __m256 widen_bf16(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
inline F load_bf16(const uint16_t* p) {
  return {widen_bf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          widen_bf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline F load_f16_n(const uint16_t* p, int n) {
  uint16_t t[16] = {};
  std::memcpy(t, p, static_cast<size_t>(n) * 2);
  return load_f16(t);
}
inline F load_bf16_n(const uint16_t* p, int n) {
  uint16_t t[16] = {};
  std::memcpy(t, p, static_cast<size_t>(n) * 2);
  return load_bf16(t);
}
inline F load_i8(const int8_t* p) {
  const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(c)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(c, 8)))};
}
inline void store_f16(uint16_t* p, F x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}
inline __m256i round_bf16(__m256 x) {  // nearest even; a NaN keeps its upper half, quieted
  const __m256i b = _mm256_castps_si256(x), upper = _mm256_srli_epi32(b, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i r = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(b, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i nan = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  return _mm256_blendv_epi8(r, nan, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
inline void store_bf16(uint16_t* p, F x) {
  const __m256i packed = _mm256_packus_epi32(round_bf16(x.a), round_bf16(x.b));  // 128-bit halves interleaved
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}

// --- int8 ---
inline I set1_i(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline F to_f32(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline uint32_t max_abs_bits(F x, F y) {  // the largest |lane| as a bit pattern
  const F p = abs(x), q = abs(y);
  const __m256i h = _mm256_max_epi32(_mm256_max_epi32(_mm256_castps_si256(p.a), _mm256_castps_si256(p.b)),
                                     _mm256_max_epi32(_mm256_castps_si256(q.a), _mm256_castps_si256(q.b)));
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
}
// Rounds to nearest even, stores 16 codes and returns the lanes. Requires: |lane| <= 127.
inline I store_codes(int8_t* p, F x) {
  const __m256i a = _mm256_cvtps_epi32(x.a), b = _mm256_cvtps_epi32(x.b);
  const __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
  return {a, b};
}
inline int32_t sum_i(I x, I y) {
  const __m256i h = _mm256_add_epi32(_mm256_add_epi32(x.a, x.b), _mm256_add_epi32(y.a, y.b));
  __m128i m = _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
  m = _mm_add_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_add_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return _mm_cvtsi128_si32(m);
}

// Sum of squares in 64 f64 lanes and the fixed tree, in two halves of 32 lanes (8 registers): lane j of the upper half
// is added to lane j of the lower at the end. The square of an f32 is exact in f64, so one fma is the multiplication
// and the addition.
inline void sum_squares_half(const float* x, int64_t d, int64_t first, __m256d* acc) {  // acc: [8]
  for (int j = 0; j < 8; ++j) acc[j] = _mm256_setzero_pd();
  int64_t i = first;
  for (; i + 32 <= d; i += 64) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * j));
      acc[j] = _mm256_fmadd_pd(v, v, acc[j]);
    }
  }
  for (int j = 0; j < 8; ++j) {
    const int64_t left = d - i - 4 * j;
    if (left <= 0) break;
    float t[4] = {};
    std::memcpy(t, x + i + 4 * j, static_cast<size_t>(left < 4 ? left : 4) * 4);
    const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(t));
    acc[j] = _mm256_fmadd_pd(v, v, acc[j]);
  }
}
inline double sum_squares(const float* x, int64_t d) {
  __m256d lo[8], hi[8];
  sum_squares_half(x, d, 0, lo);
  sum_squares_half(x, d, 32, hi);
  for (int j = 0; j < 8; ++j) lo[j] = _mm256_add_pd(lo[j], hi[j]);
  for (int half = 4; half >= 1; half /= 2) {
    for (int j = 0; j < half; ++j) lo[j] = _mm256_add_pd(lo[j], lo[j + half]);
  }
  const __m128d h = _mm_add_pd(_mm256_castpd256_pd128(lo[0]), _mm256_extractf128_pd(lo[0], 1));
  return _mm_cvtsd_f64(_mm_add_sd(h, _mm_unpackhi_pd(h, h)));
}
inline double sqrt_f64(double x) { return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(x))); }
inline float f16_value(uint16_t h) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h))); }
inline uint16_t f16_of(float x) {
  return static_cast<uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT)));
}
// Fetches lines into the second-level cache: what is wanted next is more than the first holds.
inline void prefetch(const std::byte* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + i), _MM_HINT_T1);
}

}  // namespace
}  // namespace minfer::cpu
