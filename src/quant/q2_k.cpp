// q2_k: 256 values in 16 sub-blocks of 16; 2 bits each, 4-bit scale and minimum per sub-block, f16 scales of both.
// Layout: BlockQ2_K in blocks.h.
#include "quant/codec.h"
#include "quant/search.h"

namespace minfer::quant {
namespace {
constexpr int kSub = 16;
}

void decode_q2_k(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kSuper; ++b, dst += kSuper) {
    const auto block = load_block<BlockQ2_K>(src, b);
    const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
    for (int i = 0; i < kSuper; ++i) {
      const int s = i / kSub, h = i / 128, j = i / 32 % 4, l = i % 32;
      const float scale = d * static_cast<float>(block.scales[s] & 15);
      const float min = dmin * static_cast<float>(block.scales[s] >> 4);
      dst[i] = scale * static_cast<float>((block.qs[32 * h + l] >> (2 * j)) & 3) - min;
    }
  }
}

void encode_q2_k(const float* src, const float* importance, void* dst, int64_t n) {
  for (int64_t b = 0; b < n / kSuper; ++b, src += kSuper) {
    float w[kSuper];
    error_weights(src, importance ? importance + b * kSuper : nullptr, kSuper, w);
    const AffineSuper fit = search_affine_super(src, w, kSub, /*sc_max=*/15, /*q_max=*/3);
    BlockQ2_K block{};
    block.d = fit.d;
    block.dmin = fit.dmin;
    for (int s = 0; s < 16; ++s) block.scales[s] = static_cast<uint8_t>(fit.sc[s] | (fit.m[s] << 4));
    for (int i = 0; i < kSuper; ++i) {
      const int h = i / 128, j = i / 32 % 4, l = i % 32;
      block.qs[32 * h + l] = static_cast<uint8_t>(block.qs[32 * h + l] | (fit.q[i] << (2 * j)));
    }
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
