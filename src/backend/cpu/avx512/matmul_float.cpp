// Tile kernels over float weights: one lane owns one output row, one register one token of one row group; a step of k
// is one fma per register. Several row groups at a time hide the fma latency when tokens are few.
#include "backend/cpu/avx512/matmul_tables-inl.h"
#include "backend/cpu/avx512/matmul_tile-inl.h"

namespace minfer::cpu::avx512 {
namespace {

struct F32 {
  static constexpr int kStep = 64;  // bytes per value of k of a row group
  MINFER_INLINE __m512 load(const uint8_t* w) { return _mm512_loadu_ps(w); }
};
struct F16 {
  static constexpr int kStep = 32;
  MINFER_INLINE __m512 load(const uint8_t* w) { return load_f16x16(w); }
};
struct BF16 {
  static constexpr int kStep = 32;
  MINFER_INLINE __m512 load(const uint8_t* w) {
    const __m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
  }
};

template <class F, int T, int R>
void tile_groups(const Tile& a, int first_group) {
  const uint8_t* w = a.w + first_group * a.w_stride;
  const uint8_t* x = a.x;
  __m512 acc[R][T];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) acc[r][t] = _mm512_setzero_ps();
  }
  for (int64_t i = 0; i < a.k; ++i, w += F::kStep, x += 4 * T) {
    __m512 wv[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) wv[r] = F::load(w + r * a.w_stride);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const __m512 xv = bcast_f32(x + 4 * t);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) acc[r][t] = _mm512_fmadd_ps(wv[r], xv, acc[r][t]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const int row = (first_group + r) * kRowGroup;
    const __mmask16 mask = row_mask(a.rows - row);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      if (t < a.tokens) store_tile_row(a, t, row, mask, acc[r][t]);
    }
  }
}

// R row groups at once while there are as many, then one by one.
template <class F, int T, int R>
void float_tile(const Tile& a) {
  int g = 0;
  for (; g + R <= a.groups; g += R) tile_groups<F, T, R>(a, g);
  for (; g < a.groups; ++g) tile_groups<F, T, 1>(a, g);
}

// Registers: R * T accumulators + R weights + 1 broadcast <= 32.
template <class F>
void float_format(FormatKernels& k) {
  k.groups = kMaxGroups;
  k.tile[1] = float_tile<F, 1, 4>;
  k.tile[2] = float_tile<F, 2, 4>;
  k.tile[3] = float_tile<F, 3, 4>;
  k.tile[4] = float_tile<F, 4, 4>;
  k.tile[6] = float_tile<F, 6, 4>;
  k.tile[8] = float_tile<F, 8, 2>;
  k.tile[12] = float_tile<F, 12, 2>;
}

}  // namespace

void fill_float_formats(FormatKernels* f) {
  float_format<F32>(f[kFmtF32]);
  float_format<F16>(f[kFmtF16]);
  float_format<BF16>(f[kFmtBF16]);
}

}  // namespace minfer::cpu::avx512
