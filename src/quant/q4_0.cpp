// q4_0: 32 values, 4 bits each, one f16 scale; value = d * (q - 8).
// Layout: BlockQ4_0 in blocks.h.
#include "quant/codec.h"
#include "quant/symmetric-inl.h"

namespace minfer::quant {

void decode_q4_0(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kBlock; ++b, dst += kBlock) {
    const auto block = load_block<BlockQ4_0>(src, b);
    const float d = f16_to_f32(block.d);
    uint8_t q[kBlock];
    unpack_nibbles(block.qs, q);
    for (int i = 0; i < kBlock; ++i) dst[i] = d * static_cast<float>(q[i] - 8);
  }
}

void encode_q4_0(const float* src, const float* importance, void* dst, int64_t n) {
  constexpr UniformGrid kGrid{-8, 7};
  for (int64_t b = 0; b < n / kBlock; ++b, src += kBlock) {
    float w[kBlock];
    error_weights(src, importance ? importance + b * kBlock : nullptr, kBlock, w);
    BlockQ4_0 block;
    block.d = to_f16_finite(search_scale(src, w, kBlock, kGrid));
    uint8_t q[kBlock];
    scale_codes(src, kBlock, f16_to_f32(block.d), kGrid, q, nullptr);
    pack_nibbles(q, block.qs);
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
