// mxfp4: 32 values as e2m1 floats (sign, 2 exponent bits, 1 mantissa bit) under one power-of-two scale.
// Layout: BlockMXFP4 in blocks.h.
// Source: OCP Microscaling Formats (MX) v1.0, section 5.3.3 (e2m1) and 5.4.1 (e8m0). A scale byte of 255 is NaN there;
//         GGUF readers take it as 2^128, and so does this one; the encoder never writes it.
#include <cmath>

#include "quant/codec.h"
#include "quant/search.h"

namespace minfer::quant {
namespace {

// 12 * 2^(252 - 128) = 1.5 * 2^127 is finite; one up, 8 and 12 would decode to infinity.
constexpr int kMaxExponent = 252;

// Code of |v| in units of half the smallest e2m1 step; ties go to the even code.
int magnitude_code(double v) { return (v > 0.5) + (v >= 1.5) + (v > 2.5) + (v >= 3.5) + (v > 5) + (v >= 7) + (v > 10); }

uint8_t signed_code(double v) {
  const int code = magnitude_code(std::fabs(v));
  return static_cast<uint8_t>(v < 0 && code > 0 ? code + 8 : code);
}

}  // namespace

void decode_mxfp4(const void* src, float* dst, int64_t n) {
  for (int64_t b = 0; b < n / kBlock; ++b, dst += kBlock) {
    const auto block = load_block<BlockMXFP4>(src, b);
    const float d = mxfp4_scale(block.e);
    uint8_t q[kBlock];
    unpack_nibbles(block.qs, q);
    for (int i = 0; i < kBlock; ++i) dst[i] = d * static_cast<float>(kMxfp4Values[q[i]]);
  }
}

void encode_mxfp4(const float* src, const float* importance, void* dst, int64_t n) {
  for (int64_t b = 0; b < n / kBlock; ++b, src += kBlock) {
    float w[kBlock];
    error_weights(src, importance ? importance + b * kBlock : nullptr, kBlock, w);
    float amax = 0;
    for (int i = 0; i < kBlock; ++i) amax = std::fabs(src[i]) > amax ? std::fabs(src[i]) : amax;
    // At `middle` the largest value lies in [4, 8) e2m1 units, whose top is 6: one exponent up it is never cut off,
    // one down it is, which can pay when it stands alone.
    const int middle = amax > 0 ? std::ilogb(amax) - 2 + 127 : 0;
    int best_e = 0;
    double best_error = -1;
    for (int e = middle - 1; e <= middle + 1; ++e) {
      if (e < 0 || e > kMaxExponent) continue;
      const double inv = std::ldexp(1.0, 128 - e);
      double error = 0;
      for (int i = 0; i < kBlock; ++i) {
        const double v = src[i] * inv;
        const double diff = v - kMxfp4Values[signed_code(v)];
        error += w[i] * diff * diff;
      }
      error *= std::ldexp(1.0, 2 * (e - middle));  // in units of `middle`
      if (best_error < 0 || error < best_error) best_error = error, best_e = e;
    }
    BlockMXFP4 block;
    block.e = static_cast<uint8_t>(best_e);
    const double inv = std::ldexp(1.0, 128 - best_e);
    uint8_t q[kBlock];
    for (int i = 0; i < kBlock; ++i) q[i] = signed_code(src[i] * inv);
    pack_nibbles(q, block.qs);
    store_block(block, dst, b);
  }
}

}  // namespace minfer::quant
