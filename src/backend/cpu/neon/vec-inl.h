// Sixteen f32 lanes as four NEON registers: the vector type of the bodies in ../inl for Arm with dot product and half
// precision. Everything is internal to the file that includes it.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace minfer::cpu {
namespace {

// Register budget of the attention kernels, in vectors of sixteen lanes: 24 of 32 registers, next to the operands.
constexpr int kAcc = 6;

struct F {
  float32x4_t v[4];
};
struct M {
  uint32x4_t v[4];
};
struct I {
  int32x4_t v[4];
};

#define MINFER_NEON_INLINE inline __attribute__((always_inline))

template <typename R, typename Fn>
MINFER_NEON_INLINE R each(Fn fn) {
  return {{fn(0), fn(1), fn(2), fn(3)}};
}

MINFER_NEON_INLINE F set1(float x) {
  const float32x4_t v = vdupq_n_f32(x);
  return {{v, v, v, v}};
}
MINFER_NEON_INLINE F zero() { return set1(0.0f); }
MINFER_NEON_INLINE F load(const float* p) {
  return each<F>([=](int i) { return vld1q_f32(p + 4 * i); });
}
MINFER_NEON_INLINE void store(float* p, F x) {
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, x.v[i]);
}
inline F load_n(const float* p, int n) {
  if (n >= 16) return load(p);
  float t[16] = {};
  std::memcpy(t, p, static_cast<size_t>(n) * 4);
  return load(t);
}
inline void store_n(float* p, F x, int n) {
  if (n >= 16) return store(p, x);
  float t[16];
  store(t, x);
  std::memcpy(p, t, static_cast<size_t>(n) * 4);
}
MINFER_NEON_INLINE F add(F x, F y) {
  return each<F>([&](int i) { return vaddq_f32(x.v[i], y.v[i]); });
}
MINFER_NEON_INLINE F sub(F x, F y) {
  return each<F>([&](int i) { return vsubq_f32(x.v[i], y.v[i]); });
}
MINFER_NEON_INLINE F mul(F x, F y) {
  return each<F>([&](int i) { return vmulq_f32(x.v[i], y.v[i]); });
}
MINFER_NEON_INLINE F div(F x, F y) {
  return each<F>([&](int i) { return vdivq_f32(x.v[i], y.v[i]); });
}
MINFER_NEON_INLINE F fma(F x, F y, F z) {
  return each<F>([&](int i) { return vfmaq_f32(z.v[i], x.v[i], y.v[i]); });
}
MINFER_NEON_INLINE F neg(F x) {
  return each<F>([&](int i) { return vnegq_f32(x.v[i]); });
}
MINFER_NEON_INLINE F abs(F x) {
  return each<F>([&](int i) { return vabsq_f32(x.v[i]); });
}
MINFER_NEON_INLINE F copysign(F mag, F sign) {
  const uint32x4_t s = vdupq_n_u32(0x80000000u);
  return each<F>([&](int i) { return vbslq_f32(s, sign.v[i], mag.v[i]); });
}
MINFER_NEON_INLINE M gt(F x, F y) {
  return each<M>([&](int i) { return vcgtq_f32(x.v[i], y.v[i]); });
}
MINFER_NEON_INLINE M lt(F x, F y) {
  return each<M>([&](int i) { return vcltq_f32(x.v[i], y.v[i]); });
}
MINFER_NEON_INLINE M unordered(F x) {
  return each<M>([&](int i) { return vmvnq_u32(vceqq_f32(x.v[i], x.v[i])); });
}
MINFER_NEON_INLINE M both(M x, M y) {
  return each<M>([&](int i) { return vandq_u32(x.v[i], y.v[i]); });
}
MINFER_NEON_INLINE F select(M m, F yes, F no) {
  return each<F>([&](int i) { return vbslq_f32(m.v[i], yes.v[i], no.v[i]); });
}
MINFER_NEON_INLINE F max(F x, F y) { return select(gt(x, y), x, y); }  // y where either is NaN
MINFER_NEON_INLINE F rint(F x) {
  return each<F>([&](int i) { return vrndnq_f32(x.v[i]); });
}
MINFER_NEON_INLINE M lanes(int begin, int end) {  // all ones in lanes begin to end - 1; any begin, end
  const int32_t kFirst[4] = {0, 1, 2, 3};
  const int32x4_t first = vld1q_s32(kFirst), lo = vdupq_n_s32(begin), hi = vdupq_n_s32(end);
  return each<M>([&](int i) {
    const int32x4_t lane = vaddq_s32(first, vdupq_n_s32(4 * i));
    return vandq_u32(vcgeq_s32(lane, lo), vcltq_s32(lane, hi));
  });
}
MINFER_NEON_INLINE bool any(M x) {
  return vmaxvq_u32(vorrq_u32(vorrq_u32(x.v[0], x.v[1]), vorrq_u32(x.v[2], x.v[3]))) != 0;
}
// p * 2^n for integral n in -150..128, in two multiplications as exp_f32 does; any other n gives some value.
MINFER_NEON_INLINE F scale_pow2(F p, F n) {
  const int32x4_t bias = vdupq_n_s32(127);
  return each<F>([&](int i) {
    const int32x4_t e = vcvtq_s32_f32(n.v[i]), e1 = vshrq_n_s32(e, 1), e2 = vsubq_s32(e, e1);
    const float32x4_t a = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(e1, bias), 23));
    const float32x4_t b = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(e2, bias), 23));
    return vmulq_f32(vmulq_f32(p.v[i], a), b);
  });
}
MINFER_NEON_INLINE F dup_even(F x) {
  return each<F>([&](int i) { return vtrn1q_f32(x.v[i], x.v[i]); });
}
MINFER_NEON_INLINE F dup_odd(F x) {
  return each<F>([&](int i) { return vtrn2q_f32(x.v[i], x.v[i]); });
}

// Lane j plus lane j + 8, then 4, 2, 1.
MINFER_NEON_INLINE float tree_sum(F x) {
  const float32x4_t q = vaddq_f32(vaddq_f32(x.v[0], x.v[2]), vaddq_f32(x.v[1], x.v[3]));
  const float32x2_t d = vadd_f32(vget_low_f32(q), vget_high_f32(q));
  return vget_lane_f32(d, 0) + vget_lane_f32(d, 1);
}
MINFER_NEON_INLINE float max_lane(F x) {  // Requires: no NaN
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.v[0], x.v[1]), vmaxq_f32(x.v[2], x.v[3])));
}

MINFER_NEON_INLINE F load_f16(const uint16_t* p) {
  const float16x8_t a = vreinterpretq_f16_u16(vld1q_u16(p)), b = vreinterpretq_f16_u16(vld1q_u16(p + 8));
  return {{vcvt_f32_f16(vget_low_f16(a)), vcvt_high_f32_f16(a), vcvt_f32_f16(vget_low_f16(b)), vcvt_high_f32_f16(b)}};
}
// Elements at, at + kStride, ...: 16 of them.
template <int kStride>
MINFER_NEON_INLINE F load_f16_every(const uint16_t* p, int at) {
  uint16_t t[16];
  for (int i = 0; i < 16; ++i) std::memcpy(t + i, p + i * kStride + at, 2);
  return load_f16(t);
}
MINFER_NEON_INLINE F load_bf16(const uint16_t* p) {
  const uint16x8_t a = vld1q_u16(p), b = vld1q_u16(p + 8);
  return {{vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(a), 16)), vreinterpretq_f32_u32(vshll_high_n_u16(a, 16)),
           vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(b), 16)), vreinterpretq_f32_u32(vshll_high_n_u16(b, 16))}};
}
inline F load_f16_n(const uint16_t* p, int n) {
  uint16_t t[16] = {};
  std::memcpy(t, p, static_cast<size_t>(n) * 2);
  return load_f16(t);
}
inline F load_bf16_n(const uint16_t* p, int n) {
  uint16_t t[16] = {};
  std::memcpy(t, p, static_cast<size_t>(n) * 2);
  return load_bf16(t);
}
MINFER_NEON_INLINE F load_i8(const int8_t* p) {
  const int8x16_t c = vld1q_s8(p);
  const int16x8_t a = vmovl_s8(vget_low_s8(c)), b = vmovl_high_s8(c);
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(a))), vcvtq_f32_s32(vmovl_high_s16(a)),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(b))), vcvtq_f32_s32(vmovl_high_s16(b))}};
}
MINFER_NEON_INLINE void store_f16(uint16_t* p, F x) {
  for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.v[i])));
}
MINFER_NEON_INLINE uint16x4_t round_bf16(float32x4_t x) {  // nearest even; a NaN keeps its upper half, quieted
  const uint32x4_t b = vreinterpretq_u32_f32(x), upper = vshrq_n_u32(b, 16);
  const uint32x4_t odd = vandq_u32(upper, vdupq_n_u32(1));
  const uint32x4_t r = vshrq_n_u32(vaddq_u32(vaddq_u32(b, vdupq_n_u32(0x7fff)), odd), 16);
  const uint32x4_t nan = vorrq_u32(upper, vdupq_n_u32(0x40));
  return vmovn_u32(vbslq_u32(vceqq_f32(x, x), r, nan));
}
MINFER_NEON_INLINE void store_bf16(uint16_t* p, F x) {
  for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, round_bf16(x.v[i]));
}

// --- int8 ---
MINFER_NEON_INLINE I set1_i(int32_t x) {
  const int32x4_t v = vdupq_n_s32(x);
  return {{v, v, v, v}};
}
MINFER_NEON_INLINE F to_f32(I x) {
  return each<F>([&](int i) { return vcvtq_f32_s32(x.v[i]); });
}
MINFER_NEON_INLINE uint32_t max_abs_bits(F x, F y) {  // the largest |lane| as a bit pattern
  uint32x4_t m = vdupq_n_u32(0);
  for (int i = 0; i < 4; ++i) {
    m = vmaxq_u32(m, vreinterpretq_u32_f32(vabsq_f32(x.v[i])));
    m = vmaxq_u32(m, vreinterpretq_u32_f32(vabsq_f32(y.v[i])));
  }
  return vmaxvq_u32(m);
}
// Rounds to nearest even, stores 16 codes and returns the lanes. Requires: |lane| <= 127.
MINFER_NEON_INLINE I store_codes(int8_t* p, F x) {
  const I r = each<I>([&](int i) { return vcvtnq_s32_f32(x.v[i]); });
  const int16x8_t a = vcombine_s16(vmovn_s32(r.v[0]), vmovn_s32(r.v[1]));
  const int16x8_t b = vcombine_s16(vmovn_s32(r.v[2]), vmovn_s32(r.v[3]));
  vst1q_s8(p, vcombine_s8(vmovn_s16(a), vmovn_s16(b)));
  return r;
}
MINFER_NEON_INLINE int32_t sum_i(I x, I y) {
  int32x4_t s = vaddq_s32(x.v[0], y.v[0]);
  for (int i = 1; i < 4; ++i) s = vaddq_s32(s, vaddq_s32(x.v[i], y.v[i]));
  return vaddvq_s32(s);
}

struct KeyCodes {  // 16 slots x 4 features
  int8x16_t v[4];
};
MINFER_NEON_INLINE KeyCodes load_keys(const int8_t* p) {
  return each<KeyCodes>([=](int i) { return vld1q_s8(p + 16 * i); });
}
MINFER_NEON_INLINE I dot_start(int32_t) { return set1_i(0); }
MINFER_NEON_INLINE I dot4(I acc, KeyCodes k, const int8_t* q) {  // q: 4 codes, the same for every slot
  int32_t four;
  std::memcpy(&four, q, 4);
  const int8x16_t v = vreinterpretq_s8_s32(vdupq_n_s32(four));
  return each<I>([&](int i) { return vdotq_s32(acc.v[i], k.v[i], v); });
}

// Sum of squares in 64 f64 lanes and the fixed tree, in two halves of 32 lanes (16 registers): lane j of the upper half
// is added to lane j of the lower at the end. The square of an f32 is exact in f64, so one fma is the multiplication
// and the addition.
inline void sum_squares_half(const float* x, int64_t d, int64_t first, float64x2_t* out) {  // out: [16]
  float64x2_t acc[16];
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) acc[j] = vdupq_n_f64(0.0);
  int64_t i = first;
  for (; i + 32 <= d; i += 64) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const float32x4_t v = vld1q_f32(x + i + 4 * j);
      const float64x2_t lo = vcvt_f64_f32(vget_low_f32(v)), hi = vcvt_high_f64_f32(v);
      acc[2 * j] = vfmaq_f64(acc[2 * j], lo, lo);
      acc[2 * j + 1] = vfmaq_f64(acc[2 * j + 1], hi, hi);
    }
  }
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) out[j] = acc[j];
  for (int j = 0; j < 16; ++j) {
    const int64_t left = d - i - 2 * j;
    if (left <= 0) break;
    float t[2] = {x[i + 2 * j], left > 1 ? x[i + 2 * j + 1] : 0.0f};
    const float64x2_t v = vcvt_f64_f32(vld1_f32(t));
    out[j] = vfmaq_f64(out[j], v, v);
  }
}
inline double sum_squares(const float* x, int64_t d) {
  float64x2_t lo[16], hi[16];
  sum_squares_half(x, d, 0, lo);
  sum_squares_half(x, d, 32, hi);
  for (int j = 0; j < 16; ++j) lo[j] = vaddq_f64(lo[j], hi[j]);
  for (int half = 8; half >= 1; half /= 2) {
    for (int j = 0; j < half; ++j) lo[j] = vaddq_f64(lo[j], lo[j + half]);
  }
  return vgetq_lane_f64(lo[0], 0) + vgetq_lane_f64(lo[0], 1);
}
inline double sqrt_f64(double x) { return vget_lane_f64(vsqrt_f64(vdup_n_f64(x)), 0); }
inline float f16_value(uint16_t h) { return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h))), 0); }
inline uint16_t f16_of(float x) { return vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(x))), 0); }
// Fetches lines into the second-level cache: what is wanted next is more than the first holds.
inline void prefetch(const std::byte* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}

}  // namespace
}  // namespace minfer::cpu
