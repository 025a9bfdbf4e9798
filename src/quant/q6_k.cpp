// q6_k: 256 values in 16 sub-blocks of 16; 6 bits each (-32..31), signed 8-bit scale per sub-block, f16 scale of the
// scales.
// Layout: BlockQ6_K in blocks.h.
#include "quant/codec.h"
#include "quant/symmetric-inl.h"

namespace minfer::quant {
namespace {
constexpr int kSub = 16;
}

void decode_q6_k(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kSuper; ++b, dst += kSuper) {
    const auto block = load_block<BlockQ6_K>(src, b);
    const float d = f16_to_f32(block.d);
    for (int i = 0; i < kSuper; ++i) {
      const int h = i / 128, pair = i / 32 % 4, l = i % 32;  // pair = 2n + k
      const int low = (block.ql[64 * h + i % 64] >> (4 * (pair / 2))) & 15;
      const int high = (block.qh[32 * h + l] >> (2 * pair)) & 3;
      dst[i] = (d * static_cast<float>(block.scales[i / kSub])) * static_cast<float>((low | (high << 4)) - 32);
    }
  }
}

void encode_q6_k(const float* src, const float* importance, void* dst, int64_t n) {
  constexpr UniformGrid kGrid{-32, 31};
  for (int64_t b = 0; b < n / kSuper; ++b, src += kSuper) {
    float w[kSuper];
    error_weights(src, importance ? importance + b * kSuper : nullptr, kSuper, w);
    const SymmetricSuper fit = search_symmetric_super(src, w, kSub, -128, 127, kGrid);
    BlockQ6_K block{};
    block.d = fit.d;
    std::memcpy(block.scales, fit.sc, sizeof block.scales);
    for (int i = 0; i < kSuper; ++i) {
      const int h = i / 128, pair = i / 32 % 4, l = i % 32;
      uint8_t& low = block.ql[64 * h + i % 64];
      uint8_t& high = block.qh[32 * h + l];
      low = static_cast<uint8_t>(low | ((fit.code[i] & 15) << (4 * (pair / 2))));
      high = static_cast<uint8_t>(high | ((fit.code[i] >> 4) << (2 * pair)));
    }
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
