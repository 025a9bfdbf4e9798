// q3_k: 256 values in 16 sub-blocks of 16; 3 bits each (-4..3), signed 6-bit scale per sub-block, f16 scale of the
// scales. Layout: BlockQ3_K in blocks.h.
#include "quant/codec.h"
#include "quant/symmetric-inl.h"

namespace minfer::quant {
namespace {
constexpr int kSub = 16;
}

void decode_q3_k(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kSuper; ++b, dst += kSuper) {
    const auto block = load_block<BlockQ3_K>(src, b);
    const float d = f16_to_f32(block.d);
    int8_t sc[16];
    unpack_scales_q3_k(block.scales, sc);
    for (int i = 0; i < kSuper; ++i) {
      const int h = i / 128, j = i / 32 % 4, l = i % 32;
      const int low = (block.qs[32 * h + l] >> (2 * j)) & 3;
      const int bit = (block.hmask[l] >> (4 * h + j)) & 1;
      dst[i] = (d * static_cast<float>(sc[i / kSub])) * static_cast<float>(low + 4 * bit - 4);
    }
  }
}

void encode_q3_k(const float* src, const float* importance, void* dst, int64_t n) {
  constexpr UniformGrid kGrid{-4, 3};
  for (int64_t b = 0; b < n / kSuper; ++b, src += kSuper) {
    float w[kSuper];
    error_weights(src, importance ? importance + b * kSuper : nullptr, kSuper, w);
    const SymmetricSuper fit = search_symmetric_super(src, w, kSub, -32, 31, kGrid);
    BlockQ3_K block{};
    block.d = fit.d;
    for (int s = 0; s < 16; ++s) {
      const int u = fit.sc[s] + 32;
      block.scales[s % 8] = static_cast<uint8_t>(block.scales[s % 8] | ((u & 15) << (s < 8 ? 0 : 4)));
      block.scales[8 + s % 4] = static_cast<uint8_t>(block.scales[8 + s % 4] | ((u >> 4) << (2 * (s / 4))));
    }
    for (int i = 0; i < kSuper; ++i) {
      const int h = i / 128, j = i / 32 % 4, l = i % 32;
      block.qs[32 * h + l] = static_cast<uint8_t>(block.qs[32 * h + l] | ((fit.code[i] & 3) << (2 * j)));
      block.hmask[l] = static_cast<uint8_t>(block.hmask[l] | ((fit.code[i] >> 2) << (4 * h + j)));
    }
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
