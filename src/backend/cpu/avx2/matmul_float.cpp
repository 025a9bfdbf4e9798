// Tile kernels over float weights: one lane owns one output row, two registers the rows of a group for one token; a
// step of k is one fma per register.
#include "backend/cpu/avx2/matmul_codes-inl.h"
#include "backend/cpu/avx2/matmul_tables-inl.h"

namespace minfer::cpu::avx2 {
namespace {

using namespace ymm;

struct F32 {
  static constexpr int kHalf = 32;  // bytes per value of k of 8 rows
  MINFER_INLINE __m256 load(const uint8_t* w) { return load_f32x8(w); }
};
struct F16 {
  static constexpr int kHalf = 16;
  MINFER_INLINE __m256 load(const uint8_t* w) { return load_f16x8(w); }
};
struct BF16 {
  static constexpr int kHalf = 16;
  MINFER_INLINE __m256 load(const uint8_t* w) {
    const __m256i v = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
  }
};

template <class F, int T, int R>
void tile_groups(const Tile& a, int first_group) {
  const uint8_t* w = a.w + first_group * a.w_stride;
  const uint8_t* x = a.x;
  __m256 acc[R][2][T];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[r][0][t] = acc[r][1][t] = _mm256_setzero_ps();
  }
  for (int64_t i = 0; i < a.k; ++i, w += 2 * F::kHalf, x += 4 * T) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m256 w0 = F::load(w + r * a.w_stride), w1 = F::load(w + r * a.w_stride + F::kHalf);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        const __m256 xv = bcast_f32(x + 4 * t);
        acc[r][0][t] = _mm256_fmadd_ps(w0, xv, acc[r][0][t]);
        acc[r][1][t] = _mm256_fmadd_ps(w1, xv, acc[r][1][t]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const int row = (first_group + r) * kRowGroup;
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      if (t < a.tokens) {
        store_tile_row(a, t, row, acc[r][0][t]);
        store_tile_row(a, t, row + 8, acc[r][1][t]);
      }
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

// Registers: 2 * R * T accumulators + 2 weights + 1 broadcast <= 16; R = 2 for T = 3 makes g++ 12 spill.
template <class F>
void float_format(FormatKernels& k) {
  k.groups = kMaxGroups;
  k.tile[1] = float_tile<F, 1, 4>;
  k.tile[2] = float_tile<F, 2, 2>;
  k.tile[3] = float_tile<F, 3, 1>;
  k.tile[4] = float_tile<F, 4, 1>;
  k.tile[6] = float_tile<F, 6, 1>;
}

}  // namespace

void fill_float_formats(FormatKernels* f) {
  float_format<F32>(f[kFmtF32]);
  float_format<F16>(f[kFmtF16]);
  float_format<BF16>(f[kFmtBF16]);
}

}  // namespace minfer::cpu::avx2
