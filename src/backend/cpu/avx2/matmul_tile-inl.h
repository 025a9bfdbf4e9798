// The tile kernel over block-quantized weights for AVX2: one lane owns one output row, a row group is two halves of 8.
//
// vpmaddubsw multiplies unsigned by signed bytes and adds pairs with saturation at 32767, so sums are kept below that.
// Activation codes lie in -127..127. With codes 0..c a pair gives at most 2 * 127 * c = 254 * c, and as many groups are
// added in 16 bits before they widen as fit whatever the file holds:
//     c = 15 (4 bits)  8 groups  8 * 254 * 15 = 30480
//     c = 31 (5 bits)  4 groups  4 * 254 * 31 = 31496
//     c = 63 (6 bits)  2 groups  2 * 254 * 63 = 32004
// Codes of 8 bits (q8_0 and iq4, raised by 128) are 16 * hi + lo: two sums of 4-bit codes, 8 groups each.
// Widening multiplies by a 16-bit factor for free (vpmaddwd): one, sixteen, or the scale of the half block.
// Included by the matmul files of this folder only; everything is in an anonymous namespace.
#pragma once

#include "backend/cpu/avx2/matmul_codes-inl.h"

namespace minfer::cpu::ymm {
namespace {

// (scale, scale) as i16 pairs: what vpmaddwd multiplies both partial sums of a lane by. The unpacked form holds it so.
template <class F>
MINFER_INLINE __m256i factor_of(__m256i scale) {
  if constexpr (requires { F::kUnpacked; }) return scale;
  return pair16(scale, scale);
}

// Vectors of codes per group.
template <int bits>
constexpr int kCodePlanes = bits == 8 ? 2 : 1;

// The codes as the multiplier takes them: one vector, or the low and the high nibbles of codes of 8 bits.
template <class F>
MINFER_INLINE void planes_of(const uint8_t* w, int j, int g, int h, __m256i* q) {
  if constexpr (requires { F::planes(w, j, g, h, q); }) {
    F::planes(w, j, g, h, q);
  } else {
    q[0] = F::code(w, j, g, h);
    if constexpr (F::kBits == 8) {
      q[1] = _mm256_and_si256(_mm256_srli_epi16(q[0], 4), _mm256_set1_epi8(15));
      q[0] = _mm256_and_si256(q[0], _mm256_set1_epi8(15));
    }
  }
}

alignas(32) static const int16_t kFactors[32] = {1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,
                                                 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16};
// A factor straight from memory where it is used: in a register it would push out a sum.
MINFER_INLINE __m256i load_factor(const int16_t* factors, int at) {
  asm("" : "+r"(factors));
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(factors + at));
}

// Halves [h0, h0 + H) of the row group. A broadcast of activations serves all H halves, a vector of codes all T tokens.
template <class F, int T, int H>
MINFER_INLINE void tile_part(const Tile& a, int h0) {
  constexpr bool kHalf = F::kStep == Step::kHalves || F::kStep == Step::kHalvesMin;
  constexpr int kFit = F::kBits <= 4 || F::kBits == 8 ? 8 : F::kBits == 5 ? 4 : 2;  // groups added in 16 bits
  constexpr int kChunk = kHalf && kFit > 4 ? 4 : kFit;
  constexpr int kPlanes = kCodePlanes<F::kBits>;
  static_assert(kChunk * 254 * ((1 << (F::kBits == 8 ? 4 : F::kBits)) - 1) <= 32767, "vpmaddubsw must not saturate");
  const int16_t* factors = kFactors;
  const uint8_t* w = a.w;
  const uint8_t* x = a.x;
  __m256 acc[H][T];
#pragma GCC unroll 2
  for (int h = 0; h < H; ++h) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[h][t] = _mm256_setzero_ps();
  }

  const int64_t n_units = a.k / (kActBlock * F::kBlocks);
  for (int64_t u = 0; u < n_units; ++u, w += F::kUnitBytes) {
    typename F::Unit unit[H];
#pragma GCC unroll 2
    for (int h = 0; h < H; ++h) unit[h] = F::open(w, h0 + h);
    for (int j = 0; j < F::kBlocks; ++j, x += kActBytes * T) {
      Scales s[H];
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) F::scales(w, unit[h], j, h0 + h, s[h]);
      __m256i sum[H][T];
#pragma GCC unroll 8
      for (int c = 0; c < 8; c += kChunk) {
        __m256i part[H][T][kPlanes];
#pragma GCC unroll 8
        for (int g = c; g < c + kChunk; ++g) {
          __m256i q[H][kPlanes];
#pragma GCC unroll 2
          for (int h = 0; h < H; ++h) planes_of<F>(w, j, g, h0 + h, q[h]);
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t) {
            const __m256i v = bcast_i32(x + t * kActBlock + 4 * g);
#pragma GCC unroll 2
            for (int h = 0; h < H; ++h) {
#pragma GCC unroll 2
              for (int p = 0; p < kPlanes; ++p) {
                const __m256i m = _mm256_maddubs_epi16(q[h][p], v);
                part[h][t][p] = g == c ? m : _mm256_add_epi16(part[h][t][p], m);
                // In this order: g++ would turn the sums into trees and spill their leaves.
                asm("" : "+x"(part[h][t][p]));
              }
            }
          }
        }
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) {
          const __m256i factor = !kHalf  ? load_factor(factors, 0)
                                 : c < 4 ? factor_of<F>(s[h].sc0)
                                         : factor_of<F>(s[h].sc1);
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t) {
            const __m256i wide = _mm256_madd_epi16(part[h][t][0], factor);
            if (c > 0) {
              sum[h][t] = _mm256_add_epi32(sum[h][t], wide);
            } else if constexpr (kHalf || F::kBias == 0) {
              sum[h][t] = wide;
            } else {
              sum[h][t] = _mm256_add_epi32(wide, start_value<F::kBias>(x, T, t));
            }
            if constexpr (kPlanes == 2) {
              sum[h][t] = _mm256_add_epi32(sum[h][t], _mm256_madd_epi16(part[h][t][1], load_factor(factors, 16)));
            }
            asm("" : "+x"(sum[h][t]));
          }
        }
      }
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        const __m256 d = bcast_f32(x + kActD * T + 4 * t);
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) add_block<F, T>(x, s[h], t, d, sum[h][t], acc[h][t]);
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

// Both halves in one pass, so that a broadcast serves twice; the sums into the block's accumulators wait in memory
// where there are many. Codes of 8 bits keep two sums a token: with three tokens and more, one half of the rows at a
// time.
template <class F, int T>
void tile(const Tile& a) {
  if constexpr (F::kBits < 8 || T <= 2) {
    tile_part<F, T, 2>(a, 0);
  } else {
    tile_part<F, T, 1>(a, 0);
    tile_part<F, T, 1>(a, 1);
  }
}

template <class F>
void tiles(TileFn* t) {
  t[1] = tile<F, 1>;
  t[2] = tile<F, 2>;
  t[3] = tile<F, 3>;
  t[4] = tile<F, 4>;
  t[6] = tile<F, 6>;
}

}  // namespace
}  // namespace minfer::cpu::ymm
