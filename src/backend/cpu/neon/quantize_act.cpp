// Activation forms for the NEON tile kernels.
// Source: docs/numerics.md, "Activations for quantized weights: q8a".
#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "backend/cpu/neon/matmul_tables-inl.h"

namespace minfer::cpu::neon {
namespace {

inline void store_i32(uint8_t* p, int32_t v) { std::memcpy(p, &v, 4); }
inline void store_f32(uint8_t* p, float v) { std::memcpy(p, &v, 4); }

inline int8x16_t codes_of(const float32x4_t* v, float id) {  // [4], to 16 codes
  const int16x8_t lo =
      vcombine_s16(vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(v[0], id))), vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(v[1], id))));
  const int16x8_t hi =
      vcombine_s16(vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(v[2], id))), vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(v[3], id))));
  return vcombine_s8(vmovn_s16(lo), vmovn_s16(hi));
}

// One block of one token.
void quantize_block(const float* x, uint8_t* dst, int width, int t) {
  float32x4_t v[8];
  const uint32x4_t abs_mask = vdupq_n_u32(0x7fffffff);
  uint32x4_t most = vdupq_n_u32(0);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    v[i] = vld1q_f32(x + 4 * i);
    most = vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(v[i]), abs_mask));
  }
  const uint32_t amax_bits = vmaxvq_u32(most);

  uint8_t* q = dst + t * kActBlock;
  float d, s;
  int32_t h0 = 0, h1 = 0;
  if (amax_bits >= 0x7f800000u || amax_bits < 0x0d800000u) {  // infinity or NaN; below 2^-100
    const uint32_t bits = amax_bits >= 0x7f800000u ? 0x7fc00000u : 0u;
    std::memcpy(&d, &bits, 4);
    s = d;
    std::memset(q, 0, kActBlock);
  } else {
    float amax;
    std::memcpy(&amax, &amax_bits, 4);
    d = amax / 127.0f;
    const float id = 127.0f / amax;
    const int8x16_t c0 = codes_of(v, id), c1 = codes_of(v + 4, id);
    vst1q_u8(q, vreinterpretq_u8_s8(c0));
    vst1q_u8(q + 16, vreinterpretq_u8_s8(c1));
    h0 = vaddlvq_s8(c0);
    h1 = vaddlvq_s8(c1);
    s = d * static_cast<float>(h0 + h1);
  }
  const int32_t sum = h0 + h1;
  store_f32(dst + kActD * width + 4 * t, d);
  store_f32(dst + kActS * width + 4 * t, s);
  store_i32(dst + kActH * width + 4 * t,
            static_cast<int32_t>((static_cast<uint32_t>(h0) & 0xffffu) | static_cast<uint32_t>(h1) << 16));
  store_i32(dst + kActN8 * width + 4 * t, -8 * sum);
  store_i32(dst + kActN16 * width + 4 * t, -16 * sum);
  store_i32(dst + kActN127 * width + 4 * t, -127 * sum);
  store_i32(dst + kActN128 * width + 4 * t, -128 * sum);
}

// Tokens t to t + 3: four values of each become four rows of dst.
void interleave_4(const float* const* x, int t, int width, int64_t k, float* dst) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    const float32x4_t a = vld1q_f32(x[t] + i), b = vld1q_f32(x[t + 1] + i);
    const float32x4_t c = vld1q_f32(x[t + 2] + i), d = vld1q_f32(x[t + 3] + i);
    const float64x2_t ab0 = vreinterpretq_f64_f32(vtrn1q_f32(a, b)), ab1 = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
    const float64x2_t cd0 = vreinterpretq_f64_f32(vtrn1q_f32(c, d)), cd1 = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
    float* p = dst + i * width + t;
    vst1q_f32(p, vreinterpretq_f32_f64(vtrn1q_f64(ab0, cd0)));
    vst1q_f32(p + width, vreinterpretq_f32_f64(vtrn1q_f64(ab1, cd1)));
    vst1q_f32(p + 2 * width, vreinterpretq_f32_f64(vtrn2q_f64(ab0, cd0)));
    vst1q_f32(p + 3 * width, vreinterpretq_f32_f64(vtrn2q_f64(ab1, cd1)));
  }
  for (; i < k; ++i) {
    for (int j = 0; j < 4; ++j) dst[i * width + t + j] = x[t + j][i];
  }
}

}  // namespace

void quantize_act(const float* const* x, int tokens, int width, int64_t k, uint8_t* dst) {
  for (int64_t b = 0; b < k / kActBlock; ++b, dst += kActBytes * width) {
    if (tokens < width) std::memset(dst, 0, static_cast<size_t>(kActBytes * width));
    for (int t = 0; t < tokens; ++t) quantize_block(x[t] + b * kActBlock, dst, width, t);
  }
}

void interleave_act(const float* const* x, int tokens, int width, int64_t k, float* dst) {
  int t = 0;
  for (; t + 4 <= tokens; t += 4) interleave_4(x, t, width, k, dst);
  for (; t < tokens; ++t) {
    for (int64_t i = 0; i < k; ++i) dst[i * width + t] = x[t][i];
  }
  for (; t < width; ++t) {
    for (int64_t i = 0; i < k; ++i) dst[i * width + t] = 0.0f;
  }
}

}  // namespace minfer::cpu::neon
