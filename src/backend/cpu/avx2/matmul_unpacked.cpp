// The unpacked form: one segment of a row group expanded to bytes, f32 scales and 16-bit sub-scales, used for all token
// tiles. One record per block of 32 values:
//   0 f32 a[16], 64 f32 b[16], 128 i16 sc0[16][2], 192 i16 sc1[16][2], 256 i16 pair[16][2], 320 codes u32[8][16]
// Fields a step does not use stay untouched.
#include "backend/cpu/avx2/matmul_formats-inl.h"
#include "backend/cpu/avx2/matmul_tables-inl.h"

namespace minfer::cpu::avx2 {
namespace {

constexpr int kRecord = 320 + 512;

template <Step step, int bias, int chunk>
struct Unpacked {
  static constexpr Step kStep = step;
  static constexpr int kBias = bias, kChunk = chunk, kBlocks = 1, kUnitBytes = kRecord;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int h, Scales& s) {
    s.a = load_f32x8(w + 32 * h);
    if constexpr (step == Step::kScaleMin || step == Step::kHalvesMin) s.b = load_f32x8(w + 64 + 32 * h);
    if constexpr (step == Step::kHalves || step == Step::kHalvesMin) {
      s.sc0 = load_ymm(w + 128 + 32 * h);
      s.sc1 = load_ymm(w + 192 + 32 * h);
      s.pair = load_ymm(w + 256 + 32 * h);
    }
  }
  MINFER_INLINE __m256i code(const uint8_t* w, int, int g, int h) { return load_ymm(w + 320 + 64 * g + 32 * h); }
};

template <class F>
void unpack(const uint8_t* w, int64_t k, uint8_t* dst) {
  const int64_t n_units = k / (kActBlock * F::kBlocks);
  for (int64_t u = 0; u < n_units; ++u, w += F::kUnitBytes) {
    const typename F::Unit unit[2] = {F::open(w, 0), F::open(w, 1)};
    for (int j = 0; j < F::kBlocks; ++j, dst += kRecord) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        Scales s;
        F::scales(w, unit[h], j, h, s);
        store_ymm(dst + 32 * h, _mm256_castps_si256(s.a));
        if constexpr (F::kStep == Step::kScaleMin || F::kStep == Step::kHalvesMin) {
          store_ymm(dst + 64 + 32 * h, _mm256_castps_si256(s.b));
        }
        if constexpr (F::kStep == Step::kHalves || F::kStep == Step::kHalvesMin) {
          store_ymm(dst + 128 + 32 * h, s.sc0);
          store_ymm(dst + 192 + 32 * h, s.sc1);
          store_ymm(dst + 256 + 32 * h, s.pair);
        }
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) store_ymm(dst + 320 + 64 * g + 32 * h, F::code(w, j, g, h));
      }
    }
  }
}

// The tile kernels depend on step, bias and chunk only: formats share them.
template <class F>
void unpacked(FormatKernels& k) {
  k.unpack = unpack<F>;
  k.unpacked_bytes = kRecord;
  k.unpack_from = 9;  // three tiles of four
  tiles<Unpacked<F::kStep, F::kBias, F::kChunk>>(k.tile_unpacked);
}

}  // namespace

void fill_unpacked_formats(FormatKernels* f) {
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

}  // namespace minfer::cpu::avx2
