// The tile kernel over block-quantized weights for NEON with dot product: one lane owns one output row, a row group is
// four quarters of 4 rows.
//
// sdot multiplies signed bytes and adds four products to a lane of 32 bits, exactly; one register holds the activations
// of four groups, of which sdot picks one by lane, so nothing has to be broadcast. Codes are made signed where they are
// opened, or keep a bias of at most 16 that the start value of the sum takes out.
//
// Registers (32): a call keeps Q quarters times T tokens of sums and of accumulators, twice the sums for formats with a
// scale per half block. With one quarter its 4 codes of a half block stay in registers and tokens are loaded in turn;
// with more, the T activations stay and codes are opened in turn. Included by the matmul files of this folder only;
// everything is in an anonymous namespace.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/matmul_kernels.h"

namespace minfer::cpu::neon {
namespace {

#define MINFER_INLINE static inline __attribute__((always_inline))

constexpr int kQuarters = 4;  // of a row group
constexpr int kQuarterRows = kRowGroup / kQuarters;

template <typename T>
MINFER_INLINE T load_as(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
MINFER_INLINE float load_f32(const uint8_t* p) { return load_as<float>(p); }
MINFER_INLINE float32x4_t load_f32x4(const uint8_t* p) { return vreinterpretq_f32_u8(vld1q_u8(p)); }
MINFER_INLINE int32x4_t load_i32x4(const uint8_t* p) { return vreinterpretq_s32_u8(vld1q_u8(p)); }
MINFER_INLINE int8x16_t load_i8x16(const uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }
MINFER_INLINE float32x4_t load_f16x4(const uint8_t* p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
MINFER_INLINE uint8x8_t load_4_bytes(const uint8_t* p) { return vreinterpret_u8_u32(vdup_n_u32(load_as<uint32_t>(p))); }
MINFER_INLINE int32x4_t load_u8x4(const uint8_t* p) {  // to i32 lanes
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(load_4_bytes(p)))));
}
MINFER_INLINE int32x4_t load_i8x4(const uint8_t* p) {
  return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(load_4_bytes(p)))));
}

// How a block of 32 enters the accumulator (docs/numerics.md).
enum class Step {
  kScale,      // fma(f(D), a * d, acc)
  kScaleMin,   // the same, then fma(b, s, acc): b is the minimum, for K-quants negated
  kHalves,     // E = sc0 * D0 + sc1 * D1 in place of D
  kHalvesMin,  // E as above, then M = mn0 * h0 + mn1 * h1, fma(-f(M), b * d, acc)
  kDotMin,     // D holds E already (codes times scales); M as above
};

// Scales of 4 rows for one block; a format fills what its step uses.
struct Scales {
  float32x4_t a, b;    // scale; minimum or dmin
  int32x4_t sc0, sc1;  // scales of the halves
  int32x4_t mn0, mn1;  // minimums of the halves
};

// A format F has: kStep, kBias of its codes (0, 8, 16; other than 0 only without halves), kBlocks (32-blocks per unit),
// kUnitBytes, and for quarter q of a row group: open(w, q) -> Unit, scales(w, unit, j, q, out), code<G>(w, j, q) ->
// codes of group G of block j.

// sum + the products of w with lane L of a.
template <int L>
MINFER_INLINE int32x4_t dot(int32x4_t sum, int8x16_t w, int8x16_t a) {
  return vdotq_laneq_s32(sum, w, a, L);
}

template <class F, int T, int Q, int G>
MINFER_INLINE void add_group(const uint8_t* w, int j, int q0, const int8x16_t* a, int32x4_t (*sum)[T]) {
#pragma GCC unroll 4
  for (int q = 0; q < Q; ++q) {
    const int8x16_t code = F::template code<G>(w, j, q0 + q);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) sum[q][t] = dot<G % 4>(sum[q][t], code, a[t]);
  }
}

// Adds the products of half H (0, 1) of block j: groups 4 * H to 4 * H + 3.
template <class F, int T, int Q, int H>
MINFER_INLINE void add_half(const uint8_t* w, int j, int q0, const uint8_t* x, int32x4_t (*sum)[T]) {
  const uint8_t* codes = x + 16 * H;
  if constexpr (Q == 1) {
    const int8x16_t w0 = F::template code<4 * H>(w, j, q0), w1 = F::template code<4 * H + 1>(w, j, q0),
                    w2 = F::template code<4 * H + 2>(w, j, q0), w3 = F::template code<4 * H + 3>(w, j, q0);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const int8x16_t a = load_i8x16(codes + kActBlock * t);
      sum[0][t] = dot<3>(dot<2>(dot<1>(dot<0>(sum[0][t], w0, a), w1, a), w2, a), w3, a);
    }
  } else {
    int8x16_t a[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) a[t] = load_i8x16(codes + kActBlock * t);
    add_group<F, T, Q, 4 * H>(w, j, q0, a, sum);
    add_group<F, T, Q, 4 * H + 1>(w, j, q0, a, sum);
    add_group<F, T, Q, 4 * H + 2>(w, j, q0, a, sum);
    add_group<F, T, Q, 4 * H + 3>(w, j, q0, a, sum);
  }
}

template <int bias, int T, int Q>
MINFER_INLINE void start_values(const uint8_t* x, int32x4_t (*sum)[T]) {
  static_assert(bias == 0 || bias == 8 || bias == 16);
  constexpr int kOffset = bias == 8 ? kActN8 : kActN16;
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const int32x4_t start = vdupq_n_s32(bias == 0 ? 0 : load_as<int32_t>(x + kOffset * T + 4 * t));
#pragma GCC unroll 4
    for (int q = 0; q < Q; ++q) sum[q][t] = start;
  }
}

// Adds a segment's sums to the rows row, row + 1, ... of the tile's tokens. Out of line: it runs once per 1,024 values,
// and inlined it would take registers from the loops.
__attribute__((noinline)) void store_sums(const Tile& a, int row, int n,
                                          const float* sums,  // [tokens][stride]
                                          int stride) {
  const int rows = a.rows - row < n ? a.rows - row : n;
  for (int t = 0; t < a.tokens; ++t, sums += stride) {
    float* y = a.y[t] + row;
    const float* bias = a.bias ? a.bias + row : nullptr;
    const float* residual = a.residual ? a.residual[t] + row : nullptr;
    int i = 0;
    for (; i + 4 <= rows; i += 4) {
      float32x4_t v = vld1q_f32(sums + i);
      if (!a.first) v = vaddq_f32(vld1q_f32(y + i), v);
      if (bias) v = vaddq_f32(v, vld1q_f32(bias + i));
      if (residual) v = vaddq_f32(v, vld1q_f32(residual + i));
      vst1q_f32(y + i, v);
    }
    for (; i < rows; ++i) {
      float v = a.first ? sums[i] : y[i] + sums[i];
      if (bias) v = v + bias[i];
      if (residual) v = v + residual[i];
      y[i] = v;
    }
  }
}

// Q quarters at once, starting with quarter q0.
template <class F, int T, int Q>
MINFER_INLINE void tile_quarters(const Tile& tile, int q0) {
  constexpr bool kHalf = F::kStep == Step::kHalves || F::kStep == Step::kHalvesMin;
  static_assert(!kHalf || F::kBias == 0);
  const uint8_t* w = tile.w;
  const uint8_t* x = tile.x;
  float32x4_t acc[Q][T];
#pragma GCC unroll 4
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[q][t] = vdupq_n_f32(0.0f);
  }

  const int64_t n_units = tile.k / (kActBlock * F::kBlocks);
  for (int64_t u = 0; u < n_units; ++u, w += F::kUnitBytes) {
    typename F::Unit unit[Q];
#pragma GCC unroll 4
    for (int q = 0; q < Q; ++q) unit[q] = F::open(w, q0 + q);
    for (int j = 0; j < F::kBlocks; ++j, x += kActBytes * T) {
      int32x4_t sum[Q][T], upper[Q][T];  // upper: the second half, where halves have scales of their own
      start_values<F::kBias, T, Q>(x, sum);
      add_half<F, T, Q, 0>(w, j, q0, x, sum);
      if constexpr (kHalf) {
        start_values<0, T, Q>(x, upper);
        add_half<F, T, Q, 1>(w, j, q0, x, upper);
      } else {
        add_half<F, T, Q, 1>(w, j, q0, x, sum);
      }
#pragma GCC unroll 4
      for (int q = 0; q < Q; ++q) {
        Scales s;
        F::scales(w, unit[q], j, q0 + q, s);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          const float d = load_f32(x + kActD * T + 4 * t);
          int32x4_t e = sum[q][t];
          if constexpr (kHalf) e = vmlaq_s32(vmulq_s32(e, s.sc0), upper[q][t], s.sc1);
          float32x4_t v = vfmaq_f32(acc[q][t], vcvtq_f32_s32(e), vmulq_n_f32(s.a, d));
          if constexpr (F::kStep == Step::kScaleMin) {
            v = vfmaq_n_f32(v, s.b, load_f32(x + kActS * T + 4 * t));
          } else if constexpr (F::kStep == Step::kHalvesMin || F::kStep == Step::kDotMin) {
            const uint8_t* h = x + kActH * T + 4 * t;
            const int32x4_t m = vmlaq_n_s32(vmulq_n_s32(s.mn0, load_as<int16_t>(h)), s.mn1, load_as<int16_t>(h + 2));
            v = vfmsq_f32(v, vcvtq_f32_s32(m), vmulq_n_f32(s.b, d));
          }
          acc[q][t] = v;
        }
      }
    }
  }
  float out[T][Q * kQuarterRows];
#pragma GCC unroll 4
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) vst1q_f32(out[t] + kQuarterRows * q, acc[q][t]);
  }
  store_sums(tile, kQuarterRows * q0, kQuarterRows * Q, out[0], kQuarterRows * Q);
}

// One or two tokens: the weights pass through the registers once. More: 8 sums fill them.
template <class F, int T>
void tile(const Tile& a) {
  constexpr int Q = T <= 2 ? 4 : T <= 4 ? 2 : 1;
  for (int q = 0; q < kQuarters; q += Q) tile_quarters<F, T, Q>(a, q);
}

template <class F>
void tiles(TileFn* t) {
  t[1] = tile<F, 1>;
  t[2] = tile<F, 2>;
  t[3] = tile<F, 3>;
  t[4] = tile<F, 4>;
  t[6] = tile<F, 6>;
  t[8] = tile<F, 8>;
}

// --- codes of group G, quarter q --------------------------------------------------------------------------------

// Bits from, from + 1, ... of every byte moved to bit `to`, the rest cleared.
template <int from, int to, int bits>
MINFER_INLINE uint8x16_t field(uint8x16_t v) {
  if constexpr (from < to) v = vshlq_n_u8(v, to - from);
  if constexpr (from > to) v = vshrq_n_u8(v, from - to);
  if constexpr (from > to && from + bits == 8) {
    if constexpr (to == 0) return v;  // nothing else is left
  }
  return vandq_u8(v, vdupq_n_u8(((1 << bits) - 1) << to));
}

template <int G>
MINFER_INLINE uint8x16_t nibble_code(const uint8_t* p, int q) {  // nibbles u32[4][16]
  return field < G < 4 ? 0 : 4, 0, 4 > (vld1q_u8(p + 64 * (G % 4) + 16 * q));
}
template <int G, int to>
MINFER_INLINE uint8x16_t bit_code(const uint8_t* p, int q) {  // bits u32[16]: to bit `to`
  return field<G, to, 1>(vld1q_u8(p + 16 * q));
}
template <int G, int to>
MINFER_INLINE uint8x16_t pair_code(const uint8_t* p, int q) {  // pairs u32[2][16]: to bits `to`, `to` + 1
  return field<2 * (G % 4), to, 2>(vld1q_u8(p + 64 * (G / 4) + 16 * q));
}

MINFER_INLINE int8x16_t as_signed(uint8x16_t v) { return vreinterpretq_s8_u8(v); }

}  // namespace
}  // namespace minfer::cpu::neon
