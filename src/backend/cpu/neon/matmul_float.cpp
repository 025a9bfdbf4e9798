// Tile kernels over float weights: one lane owns one output row, four registers the rows of a group for one token; a
// step of k is one fma per register.
#include "backend/cpu/neon/matmul_tables-inl.h"
#include "backend/cpu/neon/matmul_tile-inl.h"

namespace minfer::cpu::neon {
namespace {

struct F32 {
  static constexpr int kBytes = 64;  // per value of k of a row group
  MINFER_INLINE void load(const uint8_t* p, float32x4_t* w) {
#pragma GCC unroll 4
    for (int q = 0; q < kQuarters; ++q) w[q] = load_f32x4(p + 16 * q);
  }
};
struct F16 {
  static constexpr int kBytes = 32;
  MINFER_INLINE void load(const uint8_t* p, float32x4_t* w) {
    const float16x8_t a = vreinterpretq_f16_u8(vld1q_u8(p)), b = vreinterpretq_f16_u8(vld1q_u8(p + 16));
    w[0] = vcvt_f32_f16(vget_low_f16(a));
    w[1] = vcvt_high_f32_f16(a);
    w[2] = vcvt_f32_f16(vget_low_f16(b));
    w[3] = vcvt_high_f32_f16(b);
  }
};
struct BF16 {
  static constexpr int kBytes = 32;
  MINFER_INLINE void load(const uint8_t* p, float32x4_t* w) {
    const uint16x8_t a = vreinterpretq_u16_u8(vld1q_u8(p)), b = vreinterpretq_u16_u8(vld1q_u8(p + 16));
    w[0] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(a), 16));
    w[1] = vreinterpretq_f32_u32(vshll_high_n_u16(a, 16));
    w[2] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(b), 16));
    w[3] = vreinterpretq_f32_u32(vshll_high_n_u16(b, 16));
  }
};

template <class F, int T, int R>
void tile_groups(const Tile& a, int first_group) {
  const uint8_t* w = a.w + first_group * a.w_stride;
  const uint8_t* x = a.x;
  float32x4_t acc[R][T][kQuarters];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
      for (int q = 0; q < kQuarters; ++q) acc[r][t][q] = vdupq_n_f32(0.0f);
    }
  }
  for (int64_t i = 0; i < a.k; ++i, w += F::kBytes, x += 4 * T) {
    float xv[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) xv[t] = load_f32(x + 4 * t);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      float32x4_t wv[kQuarters];
      F::load(w + r * a.w_stride, wv);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
        for (int q = 0; q < kQuarters; ++q) acc[r][t][q] = vfmaq_n_f32(acc[r][t][q], wv[q], xv[t]);
      }
    }
  }
  float out[T][R * kRowGroup];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
      for (int q = 0; q < kQuarters; ++q) vst1q_f32(out[t] + kRowGroup * r + kQuarterRows * q, acc[r][t][q]);
    }
  }
  store_sums(a, kRowGroup * first_group, kRowGroup * R, out[0], kRowGroup * R);
}

// R row groups at once while there are as many, then one by one.
template <class F, int T, int R>
void float_tile(const Tile& a) {
  int g = 0;
  for (; g + R <= a.groups; g += R) tile_groups<F, T, R>(a, g);
  for (; g < a.groups; ++g) tile_groups<F, T, 1>(a, g);
}

// Registers: 4 * R * T accumulators + 4 weights + up to 4 for activations <= 32.
template <class F>
void float_format(FormatKernels& k) {
  k.groups = kMaxGroups;
  k.tile[1] = float_tile<F, 1, 4>;
  k.tile[2] = float_tile<F, 2, 2>;
  k.tile[3] = float_tile<F, 3, 2>;
  k.tile[4] = float_tile<F, 4, 1>;
  k.tile[6] = float_tile<F, 6, 1>;
}

}  // namespace

void fill_float_formats(FormatKernels* f) {
  float_format<F32>(f[kFmtF32]);
  float_format<F16>(f[kFmtF16]);
  float_format<BF16>(f[kFmtBF16]);
}

}  // namespace minfer::cpu::neon
