// f32, f16, bf16: one value per "block". Values round to nearest even; NaN and infinity stay what they are.
// Source: base/f16.h.
#include "base/f16.h"
#include "quant/codec.h"

namespace minfer::quant {

void decode_f32(const void* src, float* dst, int64_t n) {
  if (n > 0) std::memcpy(dst, src, static_cast<size_t>(n) * 4);  // the pointers of an empty row may be null
}

void encode_f32(const float* src, const float* /*importance*/, void* dst, int64_t n) {
  if (n > 0) std::memcpy(dst, src, static_cast<size_t>(n) * 4);
}

void decode_f16(const void* src, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dst[i] = f16_to_f32(load_block<uint16_t>(src, i));
}

void encode_f16(const float* src, const float* /*importance*/, void* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) store_block(f32_to_f16(src[i]), dst, i);
}

void decode_bf16(const void* src, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dst[i] = bf16_to_f32(load_block<uint16_t>(src, i));
}

void encode_bf16(const float* src, const float* /*importance*/, void* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) store_block(f32_to_bf16(src[i]), dst, i);
}

}  // namespace minfer::quant
