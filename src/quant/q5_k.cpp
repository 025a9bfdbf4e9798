// q5_k: 256 values in 8 sub-blocks of 32; 5 bits each, 6-bit scale and minimum per sub-block, f16 scales of both.
// Layout: BlockQ5_K in blocks.h.
#include "quant/codec.h"
#include "quant/search.h"

namespace minfer::quant {
namespace {
constexpr int kSub = 32;
}

void decode_q5_k(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kSuper; ++b, dst += kSuper) {
    const auto block = load_block<BlockQ5_K>(src, b);
    const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
    uint8_t sc[8], m[8];
    unpack_scales_k4(block.scales, sc, m);
    for (int s = 0; s < 8; ++s) {
      const float scale = d * static_cast<float>(sc[s]);
      const float min = dmin * static_cast<float>(m[s]);
      const uint8_t* qs = block.qs + 32 * (s / 2);
      const int shift = 4 * (s % 2);
      for (int l = 0; l < kSub; ++l) {
        const int q = ((qs[l] >> shift) & 15) | (((block.qh[l] >> s) & 1) << 4);
        dst[s * kSub + l] = scale * static_cast<float>(q) - min;
      }
    }
  }
}

void encode_q5_k(const float* src, const float* importance, void* dst, int64_t n) {
  for (int64_t b = 0; b < n / kSuper; ++b, src += kSuper) {
    float w[kSuper];
    error_weights(src, importance ? importance + b * kSuper : nullptr, kSuper, w);
    const AffineSuper fit = search_affine_super(src, w, kSub, /*sc_max=*/63, /*q_max=*/31);
    BlockQ5_K block{};
    block.d = fit.d;
    block.dmin = fit.dmin;
    pack_scales_k4(fit.sc, fit.m, block.scales);
    for (int i = 0; i < kSuper; ++i) {
      const int s = i / kSub, l = i % kSub;
      uint8_t& low = block.qs[32 * (s / 2) + l];
      low = static_cast<uint8_t>(low | ((fit.q[i] & 15) << (4 * (s % 2))));
      block.qh[l] = static_cast<uint8_t>(block.qh[l] | ((fit.q[i] >> 4) << s));
    }
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
