// The tile kernel over block-quantized weights for AVX-VNNI: one lane owns one output row, a row group is two halves
// of 8. vpdpbusd adds four products of an unsigned and a signed byte to a lane without saturation, so codes of any
// width take one instruction a group. Formats and records are those of ../avx2. The same source makes the table of
// src/backend/testing/avxvnni_evex, with the other encoding of these instructions. Included by the matmul files of
// these folders only; everything is in an anonymous namespace.
#pragma once

#include "backend/cpu/avx2/matmul_codes-inl.h"

namespace minfer::cpu::ymm {
namespace {

template <class F>
MINFER_INLINE __m256i factor_of(__m256i scale) {
  return scale;
}

// Vectors of codes per group.
template <int bits>
constexpr int kCodePlanes = 1;

template <class F>
MINFER_INLINE void planes_of(const uint8_t* w, int j, int g, int h, __m256i* q) {
  if constexpr (requires { F::kUnpacked; }) {
    F::planes(w, j, g, h, q);
  } else {
    q[0] = F::code(w, j, g, h);
  }
}

// Both halves of the row group in one pass: a broadcast of activations serves twice, a vector of codes all T tokens.
// The sums that wait for the block's end lie in memory where there are many.
template <class F, int T>
void tile(const Tile& a) {
  constexpr int H = 2;
  constexpr bool kHalf = F::kStep == Step::kHalves || F::kStep == Step::kHalvesMin;
  constexpr int kChunk = kHalf ? 4 : 8;         // groups that share an integer scale
  constexpr int kStart = kHalf ? 0 : F::kBias;  // there `pair` takes the bias out
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
    for (int h = 0; h < H; ++h) unit[h] = F::open(w, h);
    for (int j = 0; j < F::kBlocks; ++j, x += kActBytes * T) {
      Scales s[H];
#pragma GCC unroll 2
      for (int h = 0; h < H; ++h) F::scales(w, unit[h], j, h, s[h]);
      __m256i sum[H][T];
#pragma GCC unroll 2
      for (int c = 0; c < 8; c += kChunk) {
        __m256i dot[H][T];
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) {
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t) dot[h][t] = start_value<kStart>(x, T, t);
        }
#pragma GCC unroll 8
        for (int g = c; g < c + kChunk; ++g) {
          __m256i q[H];
#pragma GCC unroll 2
          for (int h = 0; h < H; ++h) planes_of<F>(w, j, g, h, &q[h]);
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t) {
            const __m256i v = bcast_i32(x + t * kActBlock + 4 * g);
#pragma GCC unroll 2
            for (int h = 0; h < H; ++h) dot[h][t] = _mm256_dpbusd_epi32(dot[h][t], q[h], v);
          }
        }
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) {
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t) {
            if constexpr (kHalf) dot[h][t] = _mm256_mullo_epi32(dot[h][t], c == 0 ? s[h].sc0 : s[h].sc1);
            sum[h][t] = c == 0 ? dot[h][t] : _mm256_add_epi32(sum[h][t], dot[h][t]);
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
      if (t < a.tokens) store_tile_row(a, t, 8 * h, acc[h][t]);
    }
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
