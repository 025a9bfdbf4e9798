// The unpacked form: one segment of a row group expanded to bytes, f32 scales and sub-scales, used for all token tiles.
// One record per block of 32 values:
//   f32 a[16]; where the step has a minimum, f32 b[16]; where it has halves, sc0[16], sc1[16] and pair[16] of 4 bytes
//   as the tile kernel wants them; codes u32[8][16], once for each plane.
// And the lists of formats. Included after a matmul_tile-inl.h, whose kCodePlanes, planes_of, factor_of and tiles it
// uses.
#pragma once

#include "backend/cpu/avx2/matmul_formats-inl.h"

namespace minfer::cpu::ymm {
namespace {

// Offsets in bytes.
template <Step step, int bits>
struct Record {
  static constexpr bool kHalf = step == Step::kHalves || step == Step::kHalvesMin;
  static constexpr bool kMin = step == Step::kScaleMin || step == Step::kHalvesMin;
  static constexpr int kB = 64, kSc0 = kB + 64 * kMin, kSc1 = kSc0 + 64, kPair = kSc1 + 64;
  static constexpr int kCodes = kHalf ? kPair + 64 : kSc0;
  static constexpr int kPlanes = kCodePlanes<bits>;
  static constexpr int kBytes = kCodes + 512 * kPlanes;
};

template <Step step, int bits, int bias>
struct Unpacked {
  using R = Record<step, bits>;
  static constexpr Step kStep = step;
  static constexpr int kBits = bits, kBias = bias, kBlocks = 1, kUnitBytes = R::kBytes;
  static constexpr bool kUnpacked = true;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int h, Scales& s) {
    s.a = load_f32x8(w + 32 * h);
    if constexpr (R::kMin) s.b = load_f32x8(w + R::kB + 32 * h);
    if constexpr (R::kHalf) {
      s.sc0 = load_ymm(w + R::kSc0 + 32 * h);
      s.sc1 = load_ymm(w + R::kSc1 + 32 * h);
      s.pair = load_ymm(w + R::kPair + 32 * h);
    }
  }
  MINFER_INLINE void planes(const uint8_t* w, int, int g, int h, __m256i* q) {
#pragma GCC unroll 2
    for (int p = 0; p < R::kPlanes; ++p) q[p] = load_ymm(w + R::kCodes + 512 * p + 64 * g + 32 * h);
  }
};

template <class F>
void unpack(const uint8_t* w, int64_t k, uint8_t* dst) {
  using R = Record<F::kStep, F::kBits>;
  const int64_t n_units = k / (kActBlock * F::kBlocks);
  for (int64_t u = 0; u < n_units; ++u, w += F::kUnitBytes) {
    const typename F::Unit unit[2] = {F::open(w, 0), F::open(w, 1)};
    for (int j = 0; j < F::kBlocks; ++j, dst += R::kBytes) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        Scales s;
        F::scales(w, unit[h], j, h, s);
        store_ymm(dst + 32 * h, _mm256_castps_si256(s.a));
        if constexpr (R::kMin) store_ymm(dst + R::kB + 32 * h, _mm256_castps_si256(s.b));
        if constexpr (R::kHalf) {
          store_ymm(dst + R::kSc0 + 32 * h, factor_of<F>(s.sc0));
          store_ymm(dst + R::kSc1 + 32 * h, factor_of<F>(s.sc1));
          store_ymm(dst + R::kPair + 32 * h, s.pair);
        }
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
          __m256i q[R::kPlanes];
          planes_of<F>(w, j, g, h, q);
#pragma GCC unroll 2
          for (int p = 0; p < R::kPlanes; ++p) store_ymm(dst + R::kCodes + 512 * p + 64 * g + 32 * h, q[p]);
        }
      }
    }
  }
}

// The tile kernels depend on step, bias and chunk only: formats share them.
template <class F>
void unpacked(FormatKernels& k) {
  k.unpack = unpack<F>;
  k.unpacked_bytes = Record<F::kStep, F::kBits>::kBytes;
  k.unpack_from = 25;  // measured equal at 18 to 24 tokens, a fifth slower at 12
  tiles<Unpacked<F::kStep, F::kBits, F::kBias>>(k.tile_unpacked);
}

// Straight from packed weights: formats of 32-value blocks.
inline void fill_small(FormatKernels* f) {
  tiles<Q8_0>(f[kFmtQ8_0].tile);
  tiles<Q4_0>(f[kFmtQ4_0].tile);
  tiles<Q4_1>(f[kFmtQ4_1].tile);
  tiles<Q5_0>(f[kFmtQ5_0].tile);
  tiles<Q5_1>(f[kFmtQ5_1].tile);
  tiles<IQ4_NL>(f[kFmtIQ4_NL].tile);
  tiles<MXFP4>(f[kFmtMXFP4].tile);
}

// The same, formats of 256-value super-blocks.
inline void fill_super(FormatKernels* f) {
  tiles<Q2_K>(f[kFmtQ2_K].tile);
  tiles<Q3_K>(f[kFmtQ3_K].tile);
  tiles<Q4_K>(f[kFmtQ4_K].tile);
  tiles<Q5_K>(f[kFmtQ5_K].tile);
  tiles<Q6_K>(f[kFmtQ6_K].tile);
  tiles<IQ4_XS>(f[kFmtIQ4_XS].tile);
}

inline void fill_unpacked(FormatKernels* f) {
  unpacked<Q8_0>(f[kFmtQ8_0]);
  unpacked<Q4_0>(f[kFmtQ4_0]);
  unpacked<Q4_1>(f[kFmtQ4_1]);
  unpacked<Q5_0>(f[kFmtQ5_0]);
  unpacked<Q5_1>(f[kFmtQ5_1]);
  unpacked<IQ4_NL>(f[kFmtIQ4_NL]);
  unpacked<MXFP4>(f[kFmtMXFP4]);
  unpacked<Q2_K>(f[kFmtQ2_K]);
  unpacked<Q3_K>(f[kFmtQ3_K]);
  unpacked<Q4_K>(f[kFmtQ4_K]);
  unpacked<Q5_K>(f[kFmtQ5_K]);
  unpacked<Q6_K>(f[kFmtQ6_K]);
  unpacked<IQ4_XS>(f[kFmtIQ4_XS]);
}

}  // namespace
}  // namespace minfer::cpu::ymm
