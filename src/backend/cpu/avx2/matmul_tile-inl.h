// The tile kernel over block-quantized weights for AVX2: one lane owns one output row, a row group is two halves of 8.
//
// vpmaddubsw multiplies unsigned by signed bytes and adds pairs with saturation at 32767, so sums are kept below that.
// Activation codes lie in -127..127. With codes 0..c a pair gives at most 2 * 127 * c, and kChunk groups are added in
// 16 bits before they widen:
//     c = 15 (4 bits)           8 groups  8 * 254 * 15 = 30480
//     c = 31 (5 bits, mxfp4+16) 4 groups  4 * 254 * 31 = 31496
//     c = 63 (6 bits)           2 groups  2 * 254 * 63 = 32004
// Signed codes down to -128 (q8_0, iq4) use |w| and the activation with w's sign: 254 * 128 = 32512, one group at a
// time (kChunk = 0); vpsignb never negates -128 because activations are never -128.
// Widening multiplies by a 16-bit factor for free (vpmaddwd): one, or the scale of the half block.
// Included by the matmul files of this folder only; everything is in an anonymous namespace.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/matmul_kernels.h"

namespace minfer::cpu::avx2 {
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
  __m256i sc0, sc1;  // i16, both halves of a lane: scales of the first and second 16 values
  __m256i pair;      // i16 pairs: kHalves (-bias * sc0, -bias * sc1), kHalvesMin (mn0, mn1)
};

// A format F has: kStep, kBias (0, 8, 16; kHalves: taken out by `pair`), kChunk, kBlocks, kUnitBytes, and for the half
// h of a row group: open(w, h) -> Unit, scales(w, unit, j, h, out), code(w, j, g, h) -> codes of group g of block j.
template <int bias>
MINFER_INLINE __m256i start_value(const uint8_t* x, int width, int t) {
  static_assert(bias == 0 || bias == 8 || bias == 16);
  if constexpr (bias == 0) return _mm256_setzero_si256();
  return bcast_i32(x + (bias == 8 ? kActN8 : kActN16) * width + t * 4);
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

// H halves at once, starting with half h0.
template <class F, int T, int H>
MINFER_INLINE void tile_halves(const Tile& a, int h0) {
  const uint8_t* w = a.w;
  const uint8_t* x = a.x;
  __m256 acc[H][T];
#pragma GCC unroll 2
  for (int h = 0; h < H; ++h) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[h][t] = _mm256_setzero_ps();
  }
  constexpr bool kHalf = F::kStep == Step::kHalves || F::kStep == Step::kHalvesMin;
  constexpr int kChunk = F::kChunk == 0 ? 1 : F::kChunk;
  static_assert(!kHalf || kChunk <= 4);
  const __m256i ones = _mm256_set1_epi16(1);

  const int64_t n_units = a.k / (kActBlock * F::kBlocks);
  for (int64_t u = 0; u < n_units; ++u, w += F::kUnitBytes) {
    typename F::Unit unit[H];
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) unit[h] = F::open(w, h0 + h);
    for (int j = 0; j < F::kBlocks; ++j, x += kActBytes * T) {
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) {
        Scales s;
        F::scales(w, unit[h], j, h0 + h, s);
        __m256i sum[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) sum[t] = start_value < kHalf ? 0 : F::kBias > (x, T, t);
#pragma GCC unroll 8
        for (int c = 0; c < 8; c += kChunk) {
          __m256i part[T];
#pragma GCC unroll 8
          for (int g = c; g < c + kChunk; ++g) {
            const __m256i q = F::code(w, j, g, h0 + h);
            const __m256i q_abs = F::kChunk == 0 ? _mm256_abs_epi8(q) : q;
#pragma GCC unroll 8
            for (int t = 0; t < T; ++t) {
              __m256i v = bcast_i32(x + t * kActBlock + 4 * g);
              if constexpr (F::kChunk == 0) v = _mm256_sign_epi8(v, q);
              const __m256i p = _mm256_maddubs_epi16(q_abs, v);
              part[t] = g == c ? p : _mm256_add_epi16(part[t], p);
              // In this order: g++ would turn the sums into trees and spill their leaves.
              asm("" : "+x"(part[t]));
            }
          }
          const __m256i factor = !kHalf ? ones : c < 4 ? s.sc0 : s.sc1;
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t) {
            sum[t] = _mm256_add_epi32(sum[t], _mm256_madd_epi16(part[t], factor));
            asm("" : "+x"(sum[t]));
          }
        }
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          const __m256 d = bcast_f32(x + kActD * T + 4 * t);
          if constexpr (F::kStep == Step::kHalves) {
            sum[t] = _mm256_add_epi32(sum[t], _mm256_madd_epi16(s.pair, bcast_i32(x + kActH * T + 4 * t)));
          }
          acc[h][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[t]), _mm256_mul_ps(s.a, d), acc[h][t]);
          if constexpr (F::kStep == Step::kScaleMin) {
            acc[h][t] = _mm256_fmadd_ps(s.b, bcast_f32(x + kActS * T + 4 * t), acc[h][t]);
          } else if constexpr (F::kStep == Step::kHalvesMin) {
            const __m256 m = _mm256_cvtepi32_ps(_mm256_madd_epi16(s.pair, bcast_i32(x + kActH * T + 4 * t)));
            acc[h][t] = _mm256_fnmadd_ps(m, _mm256_mul_ps(s.b, d), acc[h][t]);
          }
        }
      }
    }
  }
#pragma GCC unroll 2
  for (int h = 0; h < H; ++h) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      if (t < a.tokens) store_tile_row(a, t, 8 * (h0 + h), acc[h][t]);
    }
  }
}

// Few tokens: both halves in one pass over the weights. More: the sums of one half fill the registers.
template <class F, int T>
void tile(const Tile& a) {
  if constexpr (T <= 2) {
    tile_halves<F, T, 2>(a, 0);
  } else {
    tile_halves<F, T, 1>(a, 0);
    tile_halves<F, T, 1>(a, 1);
  }
}

template <class F>
void tiles(TileFn* t) {
  t[1] = tile<F, 1>;
  t[2] = tile<F, 2>;
  t[3] = tile<F, 3>;
  t[4] = tile<F, 4>;
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
}  // namespace minfer::cpu::avx2
