// q5_1: 32 values, 5 bits each, f16 scale and minimum; value = d * q + m.
// Layout: BlockQ5_1 in blocks.h.
#include "quant/codec.h"
#include "quant/search.h"

namespace minfer::quant {

void decode_q5_1(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kBlock; ++b, dst += kBlock) {
    const auto block = load_block<BlockQ5_1>(src, b);
    const float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
    uint8_t q[kBlock];
    unpack_nibbles(block.qs, q);
    unpack_fifth_bits(block.qh, q);
    for (int i = 0; i < kBlock; ++i) dst[i] = d * static_cast<float>(q[i]) + m;
  }
}

void encode_q5_1(const float* src, const float* importance, void* dst, int64_t n) {
  constexpr int kMax = 31;
  for (int64_t b = 0; b < n / kBlock; ++b, src += kBlock) {
    float w[kBlock];
    error_weights(src, importance ? importance + b * kBlock : nullptr, kBlock, w);
    const Affine fit = search_affine(src, w, kBlock, kMax, /*min_negative=*/false);
    BlockQ5_1 block;
    block.d = to_f16_finite(fit.scale);
    block.m = to_f16_finite(fit.min);
    uint8_t q[kBlock];
    affine_codes(src, kBlock, f16_to_f32(block.d), f16_to_f32(block.m), kMax, q);
    pack_nibbles(q, block.qs);
    pack_fifth_bits(q, block.qh);
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
