// q8_0: 32 values, 8 bits each, one f16 scale; value = d * q. Also a KV cache type, so its encoding is a fixed rule
// that kernels follow to the bit, not a search: d = f16(amax / 127), q = round_to_even(x * (1 / d)) within -127..127.
// Layout: BlockQ8_0 in blocks.h.
#include <cmath>

#include "quant/codec.h"
#include "quant/search.h"

namespace minfer::quant {

void decode_q8_0(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kBlock; ++b, dst += kBlock) {
    const auto block = load_block<BlockQ8_0>(src, b);
    const float d = f16_to_f32(block.d);
    for (int i = 0; i < kBlock; ++i) dst[i] = d * static_cast<float>(block.qs[i]);
  }
}

void encode_q8_0(const float* src, const float* /*importance*/, void* dst, int64_t n) {
  for (int64_t b = 0; b < n / kBlock; ++b, src += kBlock) {
    float amax = 0;
    for (int i = 0; i < kBlock; ++i) amax = std::fabs(src[i]) > amax ? std::fabs(src[i]) : amax;
    BlockQ8_0 block;
    block.d = f32_to_f16(amax / 127.0f);
    const float d = f16_to_f32(block.d);
    const float inv = d > 0 ? 1.0f / d : 0.0f;  // d of a block below 2^-25 * 127 is zero: so are its codes
    for (int i = 0; i < kBlock; ++i) {
      block.qs[i] = static_cast<int8_t>(round_even(clamp(src[i] * inv, -127.0f, 127.0f)));
    }
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
