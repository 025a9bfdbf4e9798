// Limits of NEON: fmla, sdot, 16-byte loads.
#include <arm_neon.h>

#include "backend/cpu/peak_kernels.h"

namespace minfer::cpu {
namespace {

constexpr int kChains = 16;  // latency 4 times four pipes, within 32 registers

double f32_fma(int64_t rounds, float* sink) {
  float32x4_t acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = vdupq_n_f32(static_cast<float>(i));
  const float32x4_t a = vdupq_n_f32(0.999f), b = vdupq_n_f32(0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) acc[i] = vfmaq_f32(acc[i], a, b);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = vaddq_f32(acc[0], acc[i]);
  *sink += vgetq_lane_f32(acc[0], 0);
  return static_cast<double>(rounds) * kChains * 4 * 2;
}

double int8_dot(int64_t rounds, int32_t* sink) {
  int32x4_t acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = vdupq_n_s32(i);
  int8x16_t a = vdupq_n_s8(3);
  const int8x16_t b = vdupq_n_s8(-5);
  for (int64_t r = 0; r < rounds; ++r) {
    __asm__ volatile("" : "+w"(a));  // the product must not be hoisted
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) acc[i] = vdotq_s32(acc[i], a, b);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = veorq_s32(acc[0], acc[i]);
  *sink ^= vgetq_lane_s32(acc[0], 0);
  return static_cast<double>(rounds) * kChains * 16 * 2;
}

uint64_t read(const std::byte* p, size_t n) {
  const auto* q = reinterpret_cast<const uint8_t*>(p);
  uint8x16_t acc[8];
  for (auto& x : acc) x = vdupq_n_u8(0);
  for (size_t i = 0; i < n; i += 512) {
    for (int j = 0; j < 32; ++j) acc[j % 8] = veorq_u8(acc[j % 8], vld1q_u8(q + i + 16 * j));
  }
  for (int j = 1; j < 8; ++j) acc[0] = veorq_u8(acc[0], acc[j]);
  const uint64x2_t x = vreinterpretq_u64_u8(acc[0]);
  return vgetq_lane_u64(x, 0) ^ vgetq_lane_u64(x, 1);
}

}  // namespace

const PeakKernels& peak_kernels_neon() {
  static constexpr PeakKernels table = {f32_fma, int8_dot, read};
  return table;
}

}  // namespace minfer::cpu
