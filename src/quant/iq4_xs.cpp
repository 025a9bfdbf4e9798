// iq4_xs: 256 values in 8 sub-blocks of 32; the levels of iq4_nl, signed 6-bit scale per sub-block, f16 scale of the
// scales.
// Layout: BlockIQ4_XS in blocks.h.
#include "quant/codec.h"
#include "quant/symmetric-inl.h"

namespace minfer::quant {
namespace {
constexpr int kSub = 32;
}

void decode_iq4_xs(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kSuper; ++b, dst += kSuper) {
    const auto block = load_block<BlockIQ4_XS>(src, b);
    const float d = f16_to_f32(block.d);
    int8_t sc[8];
    unpack_scales_iq4_xs(block, sc);
    for (int s = 0; s < 8; ++s) {
      const float scale = d * static_cast<float>(sc[s]);
      uint8_t q[kSub];
      unpack_nibbles(block.qs + 16 * s, q);
      for (int l = 0; l < kSub; ++l) dst[s * kSub + l] = scale * static_cast<float>(kIq4Values[q[l]]);
    }
  }
}

void encode_iq4_xs(const float* src, const float* importance, void* dst, int64_t n) {
  constexpr Iq4Grid kGrid;
  for (int64_t b = 0; b < n / kSuper; ++b, src += kSuper) {
    float w[kSuper];
    error_weights(src, importance ? importance + b * kSuper : nullptr, kSuper, w);
    const SymmetricSuper fit = search_symmetric_super(src, w, kSub, -32, 31, kGrid);
    BlockIQ4_XS block{};
    block.d = fit.d;
    for (int s = 0; s < 8; ++s) {
      const int u = fit.sc[s] + 32;
      block.scales_l[s / 2] = static_cast<uint8_t>(block.scales_l[s / 2] | ((u & 15) << (4 * (s % 2))));
      block.scales_h = static_cast<uint16_t>(block.scales_h | ((u >> 4) << (2 * s)));
      pack_nibbles(fit.code + s * kSub, block.qs + 16 * s);
    }
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
