// The tile kernel over block-quantized weights: one lane owns one output row, one register one token.
// A format supplies block(): eight vectors of unsigned codes and the block's scales; the loop below does the rest. Per
// token and block: 8 vpdpbusd with broadcast activations, one convert, one multiply, one or two fma.
// Included by the matmul files of this folder only; everything is in an anonymous namespace.
#pragma once

// g++ 12 warns about its own intrinsics' deliberately undefined pass-through operands once they are inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/matmul_kernels.h"

namespace minfer::cpu::avx512 {
namespace {

#define MINFER_INLINE static inline __attribute__((always_inline))

MINFER_INLINE int32_t load_i32(const uint8_t* p) {
  int32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
MINFER_INLINE __m512i load_zmm(const uint8_t* p) { return _mm512_loadu_si512(p); }
MINFER_INLINE __m512 load_f16x16(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
MINFER_INLINE __m512i load_u8x16(const uint8_t* p) {  // to i32 lanes
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
MINFER_INLINE __m512i load_i8x16(const uint8_t* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
MINFER_INLINE __m512i bcast_i32(const uint8_t* p) { return _mm512_set1_epi32(load_i32(p)); }
MINFER_INLINE __m512 bcast_f32(const uint8_t* p) { return _mm512_castsi512_ps(bcast_i32(p)); }

// How a block of 32 enters the accumulator (docs/numerics.md).
enum class Step {
  kScale,      // fma(f(D), a * d, acc)
  kScaleMin,   // the same, then fma(b, s, acc): b is the minimum, for K-quants negated
  kHalves,     // E = sc0 * D0 + sc1 * D1 in place of D
  kHalvesMin,  // E as above, then M = mn0 * h0 + mn1 * h1, fma(-f(M), b * d, acc)
  kDotMin,     // D holds E already (codes times scales); M as above
};

// What a format's block() yields.
struct Block {
  __m512i q[8];      // codes plus bias, four values of k per lane
  __m512 a, b;       // scale; minimum where the step has one
  __m512i sc0, sc1;  // scales of the halves
  // i16 pairs per lane. kHalves: (-bias * sc0, -bias * sc1), whose dot product with (h0, h1) takes the bias out of E.
  // kHalvesMin, kDotMin: (mn0, mn1).
  __m512i pair;
};

// A format F has:
//   kStep, kBias (of the codes: 0, 8, 16, 127 or 128; kHalves: taken out by `pair`), kBlocks (32-blocks per unit: 1,
//   8), kUnitBytes, struct Unit, open(w) -> Unit, block(w, unit, j, out).
template <int bias>
MINFER_INLINE __m512i start_value(const uint8_t* x, int width, int t) {
  if constexpr (bias == 0) {
    return _mm512_setzero_si512();
  } else {
    constexpr int off = bias == 8 ? kActN8 : bias == 16 ? kActN16 : bias == 127 ? kActN127 : kActN128;
    static_assert(bias == 8 || bias == 16 || bias == 127 || bias == 128);
    return bcast_i32(x + off * width + t * 4);
  }
}

MINFER_INLINE void store_tile_row(const Tile& a, int t, int first_row, __mmask16 mask, __m512 v) {
  float* y = a.y[t] + first_row;
  if (!a.first) v = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), v);
  if (a.bias) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, a.bias + first_row));
  if (a.residual) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, a.residual[t] + first_row));
  _mm512_mask_storeu_ps(y, mask, v);
}

MINFER_INLINE __mmask16 row_mask(int rows) {
  return static_cast<__mmask16>(rows >= kRowGroup ? 0xffffu : (1u << rows) - 1u);
}

// From this width on a block takes long enough for the hardware to fall behind in fetching the next row group.
constexpr int kPrefetchFrom = 6;

template <class F, int T>
void tile(const Tile& a) {
  const uint8_t* w = a.w;
  const uint8_t* x = a.x;
  __m512 acc[T];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) acc[t] = _mm512_setzero_ps();
  if constexpr (T >= 4) {
    // The output lines: rows of tokens lie a multiple of 4 KiB apart in most models, so they share a set of the L1
    // cache and have left it since the segment before.
    for (int t = 0; t < a.tokens; ++t) {
      _mm_prefetch(reinterpret_cast<const char*>(a.y[t]), _MM_HINT_T1);
      if (a.residual) _mm_prefetch(reinterpret_cast<const char*>(a.residual[t]), _MM_HINT_T1);
    }
  }

  const uint8_t* next = a.next;
  const int64_t n_units = a.k / (kActBlock * F::kBlocks);
  for (int64_t u = 0; u < n_units; ++u, w += F::kUnitBytes) {
    const typename F::Unit unit = F::open(w);
    for (int j = 0; j < F::kBlocks; ++j, x += kActBytes * T) {
      if constexpr (T >= kPrefetchFrom) {
        for (int i = 0; i < a.next_bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(next + i), _MM_HINT_T0);
        next += a.next_bytes;
      }
      Block blk;
      F::block(w, unit, j, blk);
      if constexpr (T > 1) {
        // Keeps the codes in registers: g++ would load (or compute) them again for every token.
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) asm("" : "+v"(blk.q[g]));
      }
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        if constexpr (T >= 4) {
          // The activations of the block after next, a line per token: a tile's records do not fit the L1 cache beside
          // the weights. Worth 12 % of a Q8_0 prefill; the same for the weights of a single token costs 14 %.
          _mm_prefetch(reinterpret_cast<const char*>(x + 2 * kActBytes * T + 64 * t), _MM_HINT_T0);
        }
        const uint8_t* q = x + t * kActBlock;
        const __m512 d = bcast_f32(x + kActD * T + t * 4);
        if constexpr (F::kStep == Step::kHalves || F::kStep == Step::kHalvesMin) {
          __m512i d0 = _mm512_setzero_si512(), d1 = d0;
#pragma GCC unroll 4
          for (int g = 0; g < 4; ++g) {
            d0 = _mm512_dpbusd_epi32(d0, blk.q[g], bcast_i32(q + 4 * g));
            d1 = _mm512_dpbusd_epi32(d1, blk.q[g + 4], bcast_i32(q + 16 + 4 * g));
          }
          __m512i e = _mm512_add_epi32(_mm512_mullo_epi32(d0, blk.sc0), _mm512_mullo_epi32(d1, blk.sc1));
          const __m512i h = bcast_i32(x + kActH * T + t * 4);
          if constexpr (F::kStep == Step::kHalves) {
            e = _mm512_dpwssd_epi32(e, blk.pair, h);
            acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(e), _mm512_mul_ps(blk.a, d), acc[t]);
          } else {
            const __m512 m = _mm512_cvtepi32_ps(_mm512_madd_epi16(blk.pair, h));
            acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(e), _mm512_mul_ps(blk.a, d), acc[t]);
            acc[t] = _mm512_fnmadd_ps(m, _mm512_mul_ps(blk.b, d), acc[t]);
          }
        } else {
          __m512i sum = start_value<F::kBias>(x, T, t);
#pragma GCC unroll 8
          for (int g = 0; g < 8; ++g) sum = _mm512_dpbusd_epi32(sum, blk.q[g], bcast_i32(q + 4 * g));
          acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(blk.a, d), acc[t]);
          if constexpr (F::kStep == Step::kScaleMin) {
            acc[t] = _mm512_fmadd_ps(blk.b, bcast_f32(x + kActS * T + t * 4), acc[t]);
          } else if constexpr (F::kStep == Step::kDotMin) {
            const __m512i h = bcast_i32(x + kActH * T + t * 4);
            const __m512 m = _mm512_cvtepi32_ps(_mm512_madd_epi16(blk.pair, h));
            acc[t] = _mm512_fnmadd_ps(m, _mm512_mul_ps(blk.b, d), acc[t]);
          }
        }
      }
    }
  }
  const __mmask16 mask = row_mask(a.rows);
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    if (t < a.tokens) store_tile_row(a, t, 0, mask, acc[t]);
  }
}

// All widths straight from the packed form.
template <class F>
void direct(FormatKernels& k) {
  k.groups = 1;
  k.tile[1] = tile<F, 1>;
  k.tile[2] = tile<F, 2>;
  k.tile[3] = tile<F, 3>;
  k.tile[4] = tile<F, 4>;
  k.tile[6] = tile<F, 6>;
  k.tile[8] = tile<F, 8>;
  k.tile[12] = tile<F, 12>;
  k.tile[16] = tile<F, 16>;
}

// --- expanding codes ------------------------------------------------------------------------------------------

// nibbles u32[4][16] -> codes of groups 0..3 (low) and 4..7 (high)
MINFER_INLINE void expand_nibbles(const uint8_t* p, __m512i* q) {
  const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i v = load_zmm(p + 64 * j);
    q[j] = _mm512_and_si512(v, low);
    q[j + 4] = _mm512_and_si512(_mm512_srli_epi16(v, 4), low);
  }
}

// Puts bit g of every byte of `bits` at bit 4 of the codes of group g. Shifts of 16-bit lanes leak neighbours' bits
// into bits 0..3 (left, by at most 4) or 5..7 (right, by at most 3), never into bit 4.
MINFER_INLINE void add_bit4(const uint8_t* p, __m512i* q) {
  const __m512i bits = load_zmm(p), m = _mm512_set1_epi8(16);
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) {
    const __m512i v = g < 4 ? _mm512_slli_epi16(bits, 4 - g) : _mm512_srli_epi16(bits, g - 4);
    q[g] = _mm512_ternarylogic_epi32(q[g], v, m, 0xf8);  // q | (v & m)
  }
}

// pairs u32[2][16] -> two-bit codes of the eight groups, at bits 0 and 1
MINFER_INLINE void expand_pairs(const uint8_t* p, __m512i* q) {
  const __m512i m = _mm512_set1_epi8(3);
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) {
    q[g] = _mm512_and_si512(_mm512_srli_epi16(load_zmm(p + 64 * (g / 4)), 2 * (g % 4)), m);
  }
}

}  // namespace
}  // namespace minfer::cpu::avx512
