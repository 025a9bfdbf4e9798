// q5_0: 32 values, 5 bits each, one f16 scale; value = d * (q - 16).
// Layout: BlockQ5_0 in blocks.h.
#include "quant/codec.h"
#include "quant/symmetric-inl.h"

namespace minfer::quant {

void decode_q5_0(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kBlock; ++b, dst += kBlock) {
    const auto block = load_block<BlockQ5_0>(src, b);
    const float d = f16_to_f32(block.d);
    uint8_t q[kBlock];
    unpack_nibbles(block.qs, q);
    unpack_fifth_bits(block.qh, q);
    for (int i = 0; i < kBlock; ++i) dst[i] = d * static_cast<float>(q[i] - 16);
  }
}

void encode_q5_0(const float* src, const float* importance, void* dst, int64_t n) {
  constexpr UniformGrid kGrid{-16, 15};
  for (int64_t b = 0; b < n / kBlock; ++b, src += kBlock) {
    float w[kBlock];
    error_weights(src, importance ? importance + b * kBlock : nullptr, kBlock, w);
    BlockQ5_0 block;
    block.d = to_f16_finite(search_scale(src, w, kBlock, kGrid));
    uint8_t q[kBlock];
    scale_codes(src, kBlock, f16_to_f32(block.d), kGrid, q, nullptr);
    pack_nibbles(q, block.qs);
    pack_fifth_bits(q, block.qh);
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
