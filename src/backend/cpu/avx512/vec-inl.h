// Sixteen f32 lanes as one zmm register: the vector type of the bodies in ../inl for AVX-512.
// Everything is internal to the file that includes it.
#pragma once

// GCC 12 takes the undefined pass-through operand of its own AVX-512 intrinsics for an uninitialised variable.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace minfer::cpu {
namespace {

// Register budget of the attention kernels: accumulators of rows x position groups / feature vectors.
constexpr int kAcc = 24;  // of 32 registers, next to the operands

struct F {
  __m512 v;
};
struct M {
  __mmask16 v;
};
struct I {
  __m512i v;
};

inline __mmask16 first_n(int n) { return static_cast<__mmask16>((1u << n) - 1); }  // 0 <= n <= 16

inline F zero() { return {_mm512_setzero_ps()}; }
inline F set1(float x) { return {_mm512_set1_ps(x)}; }
inline F load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline F load_n(const float* p, int n) { return {_mm512_maskz_loadu_ps(first_n(n), p)}; }
inline void store(float* p, F x) { _mm512_storeu_ps(p, x.v); }
inline void store_n(float* p, F x, int n) { _mm512_mask_storeu_ps(p, first_n(n), x.v); }
inline F add(F a, F b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F sub(F a, F b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F mul(F a, F b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F div(F a, F b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F fma(F a, F b, F c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F neg(F a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
inline F abs(F a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.v)}; }
inline F copysign(F mag, F sign) { return {_mm512_or_ps(abs(mag).v, _mm512_and_ps(_mm512_set1_ps(-0.0f), sign.v))}; }
inline F max(F a, F b) { return {_mm512_max_ps(a.v, b.v)}; }  // b where either is NaN
inline F rint(F a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline M gt(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
inline M lt(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline M unordered(F a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
inline M lanes(int begin, int end) { return {static_cast<__mmask16>(first_n(end) & ~first_n(begin))}; }
inline M both(M a, M b) { return {static_cast<__mmask16>(a.v & b.v)}; }
inline bool any(M a) { return a.v != 0; }
inline F select(M m, F yes, F no) { return {_mm512_mask_blend_ps(m.v, no.v, yes.v)}; }
// p * 2^n for integral n: scalef rounds once, as the two multiplications of exp_f32 do.
inline F scale_pow2(F p, F n) { return {_mm512_scalef_ps(p.v, n.v)}; }
// a0 a0 a2 a2 ... / a1 a1 a3 a3 ...
inline F dup_even(F a) { return {_mm512_moveldup_ps(a.v)}; }
inline F dup_odd(F a) { return {_mm512_movehdup_ps(a.v)}; }

// Lane j plus lane j + 8, then 4, 2, 1.
inline float tree_sum(F a) {
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
inline float max_lane(F a) { return _mm512_reduce_max_ps(a.v); }  // Requires: no NaN

inline F load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
// Elements at, at + kStride, ... of 16 * kStride (2 or 4): 16 of them.
template <int kStride>
inline F load_f16_every(const uint16_t* p, int at) {
  static_assert(kStride == 2 || kStride == 4);
  const __m512i first = _mm512_set1_epi16(static_cast<int16_t>(at)), a = _mm512_loadu_si512(p);
  const __m512i step = _mm512_setr_epi32(1 << 16, 3 << 16 | 2, 5 << 16 | 4, 7 << 16 | 6, 9 << 16 | 8, 11 << 16 | 10,
                                         13 << 16 | 12, 15 << 16 | 14, 0, 0, 0, 0, 0, 0, 0, 0);  // words 0..15
  const __m512i index = _mm512_add_epi16(_mm512_slli_epi16(step, kStride == 4 ? 2 : 1), first);
  __m512i v;
  if constexpr (kStride == 2) {
    v = _mm512_permutexvar_epi16(index, a);
  } else {
    v = _mm512_permutex2var_epi16(a, index, _mm512_loadu_si512(p + 32));
  }
  return {_mm512_cvtph_ps(_mm512_castsi512_si256(v))};
}
inline F load_f16_n(const uint16_t* p, int n) { return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_n(n), p))}; }
inline F widen_bf16(__m256i h) { return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))}; }
inline F load_bf16(const uint16_t* p) { return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
inline F load_bf16_n(const uint16_t* p, int n) { return widen_bf16(_mm256_maskz_loadu_epi16(first_n(n), p)); }
inline F load_i8(const int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
inline void store_f16(uint16_t* p, F x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
}
inline void store_bf16(uint16_t* p, F x) {  // nearest even; a NaN keeps its upper half, quieted
  const __m512i b = _mm512_castps_si512(x.v), upper = _mm512_srli_epi32(b, 16);
  const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
  const __m512i r = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(b, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __m512i y = _mm512_mask_or_epi32(r, unordered(x).v, upper, _mm512_set1_epi32(0x40));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(y));
}

// --- int8 ---
inline I set1_i(int32_t x) { return {_mm512_set1_epi32(x)}; }
inline F to_f32(I a) { return {_mm512_cvtepi32_ps(a.v)}; }
inline uint32_t max_abs_bits(F a, F b) {  // the largest |lane| as a bit pattern
  return static_cast<uint32_t>(
      _mm512_reduce_max_epi32(_mm512_max_epi32(_mm512_castps_si512(abs(a).v), _mm512_castps_si512(abs(b).v))));
}
// Rounds to nearest even, stores 16 codes and returns the lanes. Requires: |lane| <= 127.
inline I store_codes(int8_t* p, F x) {
  const __m512i q = _mm512_cvtps_epi32(x.v);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(q));
  return {q};
}
inline int32_t sum_i(I a, I b) { return _mm512_reduce_add_epi32(_mm512_add_epi32(a.v, b.v)); }

// Keys of 16 slots x 4 features, made unsigned by adding 128; the dot product then starts at -128 * sum(query codes).
struct KeyCodes {
  __m512i v;
};
inline KeyCodes load_keys(const int8_t* p) {
  return {_mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(static_cast<char>(0x80)))};
}
inline I dot_start(int32_t sum) { return {_mm512_set1_epi32(-128 * sum)}; }
inline I dot4(I acc, KeyCodes k, const int8_t* q) {  // q: 4 codes, the same for every slot
  int32_t four;
  std::memcpy(&four, q, 4);
  return {_mm512_dpbusd_epi32(acc.v, k.v, _mm512_set1_epi32(four))};
}

// Sum of squares in 64 f64 lanes and the fixed tree. The square of an f32 is exact in f64, so one fma is the
// multiplication and the addition.
inline double sum_squares(const float* x, int64_t d) {
  __m512d acc[8];
  for (int j = 0; j < 8; ++j) acc[j] = _mm512_setzero_pd();
  int64_t i = 0;
  for (; i + 64 <= d; i += 64) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const __m512d v = _mm512_cvtps_pd(_mm256_loadu_ps(x + i + 8 * j));
      acc[j] = _mm512_fmadd_pd(v, v, acc[j]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    const int64_t left = d - i - 8 * j;
    const int n = left < 0 ? 0 : left > 8 ? 8 : static_cast<int>(left);
    const __m512d v =
        _mm512_cvtps_pd(_mm256_maskz_loadu_ps(static_cast<__mmask8>((1u << n) - 1), x + (n ? i + 8 * j : 0)));
    acc[j] = _mm512_fmadd_pd(v, v, acc[j]);
  }
  for (int half = 4; half >= 1; half /= 2) {
    for (int j = 0; j < half; ++j) acc[j] = _mm512_add_pd(acc[j], acc[j + half]);
  }
  const __m256d q = _mm256_add_pd(_mm512_castpd512_pd256(acc[0]), _mm512_extractf64x4_pd(acc[0], 1));
  const __m128d h = _mm_add_pd(_mm256_castpd256_pd128(q), _mm256_extractf128_pd(q, 1));
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
