// Quantizing a block of 32 values to int8 codes: the rule shared by q8a and the q8_0 KV cache (docs/numerics.md).
// Included after a vec-inl.h; everything is internal to the including file.
#pragma once

namespace minfer::cpu {
namespace {

constexpr uint32_t kInfBits = 0x7f800000u;
constexpr uint32_t kTinyBits = 0x0d800000u;  // 2^-100

// Writes 32 codes; returns their sum. d: amax / 127, NaN when amax is infinite or NaN, 0 when it is tiny.
inline int32_t quantize_block(const float* x, int8_t* codes, float* d) {
  const F a = load(x), b = load(x + 16);
  const uint32_t bits = max_abs_bits(a, b);
  if (bits >= kInfBits || bits < kTinyBits) {
    std::memset(codes, 0, 32);
    *d = bits >= kInfBits ? __builtin_nanf("") : 0.0f;
    return 0;
  }
  float amax;
  std::memcpy(&amax, &bits, 4);
  *d = amax / 127.0f;
  const F id = set1(127.0f / amax);
  const I p = store_codes(codes, mul(a, id));
  const I q = store_codes(codes + 16, mul(b, id));
  return sum_i(p, q);
}

}  // namespace
}  // namespace minfer::cpu
