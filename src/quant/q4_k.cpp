// q4_k: 256 values in 8 sub-blocks of 32; 4 bits each, 6-bit scale and minimum per sub-block, f16 scales of both.
// Layout: BlockQ4_K in blocks.h.
#include "quant/codec.h"
#include "quant/search.h"

namespace minfer::quant {
namespace {
constexpr int kSub = 32;
}

void decode_q4_k(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kSuper; ++b, dst += kSuper) {
    const auto block = load_block<BlockQ4_K>(src, b);
    const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
    uint8_t sc[8], m[8];
    unpack_scales_k4(block.scales, sc, m);
    for (int s = 0; s < 8; ++s) {
      const float scale = d * static_cast<float>(sc[s]);
      const float min = dmin * static_cast<float>(m[s]);
      const uint8_t* qs = block.qs + 32 * (s / 2);
      const int shift = 4 * (s % 2);
      for (int l = 0; l < kSub; ++l) dst[s * kSub + l] = scale * static_cast<float>((qs[l] >> shift) & 15) - min;
    }
  }
}

void encode_q4_k(const float* src, const float* importance, void* dst, int64_t n) {
  for (int64_t b = 0; b < n / kSuper; ++b, src += kSuper) {
    float w[kSuper];
    error_weights(src, importance ? importance + b * kSuper : nullptr, kSuper, w);
    const AffineSuper fit = search_affine_super(src, w, kSub, /*sc_max=*/63, /*q_max=*/15);
    BlockQ4_K block{};
    block.d = fit.d;
    block.dmin = fit.dmin;
    pack_scales_k4(fit.sc, fit.m, block.scales);
    for (int g = 0; g < 4; ++g) {
      for (int l = 0; l < 32; ++l) {
        block.qs[32 * g + l] = static_cast<uint8_t>(fit.q[64 * g + l] | (fit.q[64 * g + 32 + l] << 4));
      }
    }
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
