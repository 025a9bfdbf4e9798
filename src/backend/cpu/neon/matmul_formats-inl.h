// How each packed block format is opened for the NEON tile kernel. Layouts: pack.h.
#pragma once

#include "backend/cpu/neon/matmul_tile-inl.h"

namespace minfer::cpu::neon {
namespace {

struct NoUnit {};

alignas(16) static const int8_t kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
alignas(16) static const int8_t kMxfp4[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                              0, -1, -2, -3, -4, -6, -8, -12};  // twice the value

MINFER_INLINE int8x16_t look_up(const int8_t* table, uint8x16_t nibbles) {
  return vqtbl1q_s8(vld1q_s8(table), nibbles);
}

// Lanes shifted right by n, 0 <= n < 32.
MINFER_INLINE uint32x4_t shift_right(uint32x4_t v, int n) { return vshlq_u32(v, vdupq_n_s32(-n)); }

struct Q8_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 0, kBlocks = 1, kUnitBytes = 16 * 34;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) { s.a = load_f16x4(w + 8 * q); }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int, int q) {
    return as_signed(veorq_u8(vld1q_u8(w + 32 + 64 * G + 16 * q), vdupq_n_u8(0x80)));
  }
};

struct Q4_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 8, kBlocks = 1, kUnitBytes = 16 * 18;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) { s.a = load_f16x4(w + 8 * q); }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int, int q) {
    return as_signed(nibble_code<G>(w + 32, q));
  }
};

struct Q4_1 {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBias = 0, kBlocks = 1, kUnitBytes = 16 * 20;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) {
    s.a = load_f16x4(w + 8 * q);
    s.b = load_f16x4(w + 32 + 8 * q);
  }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int, int q) {
    return as_signed(nibble_code<G>(w + 64, q));
  }
};

struct Q5_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 16, kBlocks = 1, kUnitBytes = 16 * 22;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) { s.a = load_f16x4(w + 8 * q); }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int, int q) {
    return as_signed(vorrq_u8(nibble_code<G>(w + 32, q), bit_code<G, 4>(w + 288, q)));
  }
};

struct Q5_1 {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBias = 0, kBlocks = 1, kUnitBytes = 16 * 24;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) {
    s.a = load_f16x4(w + 8 * q);
    s.b = load_f16x4(w + 32 + 8 * q);
  }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int, int q) {
    return as_signed(vorrq_u8(nibble_code<G>(w + 64, q), bit_code<G, 4>(w + 320, q)));
  }
};

struct IQ4_NL {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 0, kBlocks = 1, kUnitBytes = 16 * 18;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) { s.a = load_f16x4(w + 8 * q); }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int, int q) {
    return look_up(kIq4, nibble_code<G>(w + 32, q));
  }
};

struct MXFP4 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 0, kBlocks = 1, kUnitBytes = 16 * 17;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) {
    // 2^(e - 128): exponent field e - 1 from e = 2 on; e = 0 and 1 are the denormals 2^-128 and 2^-127.
    const int32x4_t e = load_u8x4(w + 4 * q);
    const uint32x4_t tiny = vcltq_s32(e, vdupq_n_s32(2));
    const int32x4_t normal = vshlq_n_s32(vsubq_s32(e, vdupq_n_s32(1)), 23);
    const int32x4_t denormal = vshlq_s32(vdupq_n_s32(0x00200000), vandq_s32(e, vdupq_n_s32(1)));
    s.a = vreinterpretq_f32_s32(vbslq_s32(tiny, denormal, normal));
  }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int, int q) {
    return look_up(kMxfp4, nibble_code<G>(w + 16, q));
  }
};

struct K4Unit {
  float32x4_t d, dmin;
  uint32x4_t high;
};
MINFER_INLINE K4Unit open_k4(const uint8_t* w, int q) {
  return {load_f16x4(w + 8 * q), load_f16x4(w + 32 + 8 * q), vreinterpretq_u32_s32(load_i32x4(w + 192 + 16 * q))};
}
MINFER_INLINE void scales_k4(const uint8_t* w, const K4Unit& u, int j, int q, Scales& s) {
  const uint32x4_t low = vreinterpretq_u32_s32(load_u8x4(w + 64 + 16 * j + 4 * q)), high = shift_right(u.high, 2 * j);
  const uint32x4_t m15 = vdupq_n_u32(15), m48 = vdupq_n_u32(0x30);
  const uint32x4_t sc = vorrq_u32(vandq_u32(low, m15), vandq_u32(vshlq_n_u32(high, 4), m48));
  const uint32x4_t mn = vorrq_u32(vshrq_n_u32(low, 4), vandq_u32(vshrq_n_u32(high, 12), m48));
  s.a = vmulq_f32(u.d, vcvtq_f32_u32(sc));
  s.b = vnegq_f32(vmulq_f32(u.dmin, vcvtq_f32_u32(mn)));  // fma(-b, s, acc)
}

struct Q4_K {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBias = 0, kBlocks = 8, kUnitBytes = 16 * 144;
  using Unit = K4Unit;
  MINFER_INLINE Unit open(const uint8_t* w, int q) { return open_k4(w, q); }
  MINFER_INLINE void scales(const uint8_t* w, const Unit& u, int j, int q, Scales& s) { scales_k4(w, u, j, q, s); }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int j, int q) {
    return as_signed(nibble_code<G>(w + 256 + 256 * j, q));
  }
};

struct Q5_K {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBias = 0, kBlocks = 8, kUnitBytes = 16 * 176;
  using Unit = K4Unit;
  MINFER_INLINE Unit open(const uint8_t* w, int q) { return open_k4(w, q); }
  MINFER_INLINE void scales(const uint8_t* w, const Unit& u, int j, int q, Scales& s) { scales_k4(w, u, j, q, s); }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int j, int q) {
    const uint8_t* p = w + 256 + 320 * j;
    return as_signed(vorrq_u8(nibble_code<G>(p, q), bit_code<G, 4>(p + 256, q)));
  }
};

struct Q6_K {
  static constexpr Step kStep = Step::kHalves;
  static constexpr int kBias = 0, kBlocks = 8, kUnitBytes = 16 * 210;
  using Unit = float32x4_t;
  MINFER_INLINE Unit open(const uint8_t* w, int q) { return load_f16x4(w + 8 * q); }
  MINFER_INLINE void scales(const uint8_t* w, Unit d, int j, int q, Scales& s) {
    const uint8_t* p = w + 32 + 416 * j + 4 * q;
    s.a = d;
    s.sc0 = load_i8x4(p);
    s.sc1 = load_i8x4(p + 16);
  }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int j, int q) {
    const uint8_t* p = w + 64 + 416 * j;
    return vsubq_s8(as_signed(vorrq_u8(nibble_code<G>(p, q), pair_code<G, 4>(p + 256, q))), vdupq_n_s8(32));
  }
};

struct Q3_K {  // q - (bit ? 0 : 4) = (q | bit << 2) - 4
  static constexpr Step kStep = Step::kHalves;
  static constexpr int kBias = 0, kBlocks = 8, kUnitBytes = 16 * 110;
  struct Unit {
    float32x4_t d;
    uint32x4_t high;
  };
  MINFER_INLINE Unit open(const uint8_t* w, int q) {
    return {load_f16x4(w + 8 * q), vreinterpretq_u32_s32(load_i32x4(w + 160 + 16 * q))};
  }
  MINFER_INLINE void scales(const uint8_t* w, const Unit& u, int j, int q, Scales& s) {
    const uint32x4_t low = vreinterpretq_u32_s32(load_u8x4(w + 32 + 16 * j + 4 * q)), high = shift_right(u.high, 4 * j);
    const uint32x4_t m15 = vdupq_n_u32(15), m48 = vdupq_n_u32(0x30);
    const uint32x4_t a = vorrq_u32(vandq_u32(low, m15), vandq_u32(vshlq_n_u32(high, 4), m48));
    const uint32x4_t b = vorrq_u32(vshrq_n_u32(low, 4), vandq_u32(vshlq_n_u32(high, 2), m48));
    s.a = u.d;
    s.sc0 = vsubq_s32(vreinterpretq_s32_u32(a), vdupq_n_s32(32));
    s.sc1 = vsubq_s32(vreinterpretq_s32_u32(b), vdupq_n_s32(32));
  }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int j, int q) {
    const uint8_t* p = w + 224 + 192 * j;
    return vsubq_s8(as_signed(vorrq_u8(pair_code<G, 0>(p, q), bit_code<G, 2>(p + 128, q))), vdupq_n_s8(4));
  }
};

struct Q2_K {
  static constexpr Step kStep = Step::kHalvesMin;
  static constexpr int kBias = 0, kBlocks = 8, kUnitBytes = 16 * 84;
  struct Unit {
    float32x4_t d, dmin;
  };
  MINFER_INLINE Unit open(const uint8_t* w, int q) { return {load_f16x4(w + 8 * q), load_f16x4(w + 32 + 8 * q)}; }
  MINFER_INLINE void scales(const uint8_t* w, const Unit& u, int j, int q, Scales& s) {
    const uint8_t* p = w + 64 + 160 * j + 4 * q;
    const int32x4_t v0 = load_u8x4(p), v1 = load_u8x4(p + 16), m15 = vdupq_n_s32(15);
    s.a = u.d;
    s.b = u.dmin;
    s.sc0 = vandq_s32(v0, m15);
    s.sc1 = vandq_s32(v1, m15);
    s.mn0 = vshrq_n_s32(v0, 4);
    s.mn1 = vshrq_n_s32(v1, 4);
  }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int j, int q) {
    return as_signed(pair_code<G, 0>(w + 96 + 160 * j, q));
  }
};

struct IQ4_XS {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 0, kBlocks = 8, kUnitBytes = 16 * 136;
  struct Unit {
    float32x4_t d;
    uint32x4_t low, high;
  };
  MINFER_INLINE Unit open(const uint8_t* w, int q) {
    return {load_f16x4(w + 8 * q), vreinterpretq_u32_s32(load_i32x4(w + 32 + 16 * q)),
            vmovl_u16(vreinterpret_u16_u8(vld1_u8(w + 96 + 8 * q)))};
  }
  MINFER_INLINE void scales(const uint8_t*, const Unit& u, int j, int, Scales& s) {
    const uint32x4_t low = vandq_u32(shift_right(u.low, 4 * j), vdupq_n_u32(15));
    const uint32x4_t high = vandq_u32(vshlq_n_u32(shift_right(u.high, 2 * j), 4), vdupq_n_u32(0x30));
    const int32x4_t ls = vsubq_s32(vreinterpretq_s32_u32(vorrq_u32(low, high)), vdupq_n_s32(32));
    s.a = vmulq_f32(u.d, vcvtq_f32_s32(ls));
  }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int j, int q) {
    return look_up(kIq4, nibble_code<G>(w + 128 + 256 * j, q));
  }
};

}  // namespace
}  // namespace minfer::cpu::neon
