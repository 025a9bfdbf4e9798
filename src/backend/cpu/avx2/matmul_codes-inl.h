// What the tile kernels of this folder and of avxvnni/ share (both work on 32-byte vectors: namespace ymm): loads,
// scales, codes of eight rows, the way a sum leaves. One lane owns one output row, so a row group of 16 is two halves
// of 8. Included by the matmul files only; everything is in an anonymous namespace.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/matmul_kernels.h"

namespace minfer::cpu::ymm {
namespace {

#define MINFER_INLINE static inline __attribute__((always_inline))

MINFER_INLINE int32_t load_i32(const uint8_t* p) {
  int32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
MINFER_INLINE __m256i load_ymm(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
MINFER_INLINE void store_ymm(uint8_t* p, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
MINFER_INLINE __m256 load_f32x8(const uint8_t* p) { return _mm256_castsi256_ps(load_ymm(p)); }
MINFER_INLINE __m256 load_f16x8(const uint8_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
MINFER_INLINE __m256i load_u8x8(const uint8_t* p) {  // to i32 lanes
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
MINFER_INLINE __m256i load_i8x8(const uint8_t* p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
MINFER_INLINE __m256i bcast_i32(const uint8_t* p) { return _mm256_set1_epi32(load_i32(p)); }
MINFER_INLINE __m256 bcast_f32(const uint8_t* p) { return _mm256_castsi256_ps(bcast_i32(p)); }

// How a block of 32 enters the accumulator (docs/numerics.md).
enum class Step { kScale, kScaleMin, kHalves, kHalvesMin };

// Scales of 8 rows for one block.
struct Scales {
  __m256 a, b;       // scale; minimum (negated for K-quants) or dmin
  __m256i sc0, sc1;  // i32: scales of the first and second 16 values
  __m256i pair;      // i16 pairs: kHalves (-bias * sc0, -bias * sc1), kHalvesMin (mn0, mn1)
};

// A format F has: kStep, kBits (its unsigned codes are below 2^kBits; a group of four values of k fills a lane), kBias
// (what they have been raised by: 0, 8, 16 or 128; kHalves: taken out by `pair`), kBlocks (32-blocks per unit: 1 or 8),
// kUnitBytes, and for the half h of a row group: open(w, h) -> Unit, scales(w, unit, j, h, out), code(w, j, g, h) ->
// codes of group g of block j.
template <int bias>
MINFER_INLINE __m256i start_value(const uint8_t* x, int width, int t) {
  static_assert(bias == 0 || bias == 8 || bias == 16 || bias == 128);
  if constexpr (bias == 0) return _mm256_setzero_si256();
  return bcast_i32(x + (bias == 8 ? kActN8 : bias == 16 ? kActN16 : kActN128) * width + t * 4);
}

// A block's exact sum enters the accumulator of token t. x: the block's record of T tokens; d: the token's scale.
template <class F, int T>
MINFER_INLINE void add_block(const uint8_t* x, const Scales& s, int t, __m256 d, __m256i sum, __m256& acc) {
  __m256i m;  // kHalves: what takes the bias out; kHalvesMin: the minima's part
  if constexpr (F::kStep == Step::kHalves || F::kStep == Step::kHalvesMin) {
    m = _mm256_madd_epi16(s.pair, bcast_i32(x + kActH * T + 4 * t));
  }
  if constexpr (F::kStep == Step::kHalves) sum = _mm256_add_epi32(sum, m);
  acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(s.a, d), acc);
  if constexpr (F::kStep == Step::kScaleMin) {
    acc = _mm256_fmadd_ps(s.b, bcast_f32(x + kActS * T + 4 * t), acc);
  } else if constexpr (F::kStep == Step::kHalvesMin) {
    acc = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(m), _mm256_mul_ps(s.b, d), acc);
  }
}

// Mask of the first `rows` of 8 lanes.
MINFER_INLINE __m256i lane_mask(int rows) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(rows), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

MINFER_INLINE void store_tile_row(const Tile& a, int t, int row, __m256 v) {
  if (a.rows <= row) return;
  const __m256i mask = lane_mask(a.rows - row);
  float* y = a.y[t] + row;
  if (!a.first) v = _mm256_add_ps(_mm256_maskload_ps(y, mask), v);
  if (a.bias) v = _mm256_add_ps(v, _mm256_maskload_ps(a.bias + row, mask));
  if (a.residual) v = _mm256_add_ps(v, _mm256_maskload_ps(a.residual[t] + row, mask));
  _mm256_maskstore_ps(y, mask, v);
}

// --- codes of group g, half h ---------------------------------------------------------------------------------

// nibbles u32[4][16]
MINFER_INLINE __m256i nibble_code(const uint8_t* p, int g, int h) {
  const __m256i v = load_ymm(p + 64 * (g & 3) + 32 * h);
  return _mm256_and_si256(g < 4 ? v : _mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
}

// Field of `bits` bits at bit `from` of every byte, moved to bit `to`. What 16-bit shifts leak from the neighbouring
// byte lies outside the field.
MINFER_INLINE __m256i field(const uint8_t* p, int from, int to, int bits) {
  const __m256i v = load_ymm(p);
  const __m256i m = _mm256_set1_epi8(static_cast<char>(((1 << bits) - 1) << to));
  return _mm256_and_si256(from < to ? _mm256_slli_epi16(v, to - from) : _mm256_srli_epi16(v, from - to), m);
}

// bits u32[16]: bit g to bit `to`
MINFER_INLINE __m256i bit_code(const uint8_t* p, int g, int h, int to) { return field(p + 32 * h, g, to, 1); }

// pairs u32[2][16]: two bits of group g to bits `to`, `to` + 1
MINFER_INLINE __m256i pair_code(const uint8_t* p, int g, int h, int to) {
  return field(p + 64 * (g / 4) + 32 * h, 2 * (g % 4), to, 2);
}

// (lo, hi) as an i16 pair per lane, lo and hi being i32 lanes that fit.
MINFER_INLINE __m256i pair16(__m256i lo, __m256i hi) { return _mm256_blend_epi16(lo, _mm256_slli_epi32(hi, 16), 0xaa); }

}  // namespace
}  // namespace minfer::cpu::ymm
