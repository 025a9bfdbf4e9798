// q8a: how activations are quantized for block-quantized weights and for a q8_0 K cache. The shared definition.
// Layout:  blocks of 32 values in order of k.
// Source:  docs/numerics.md, "Activations for quantized weights".
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace minfer::ref {

inline constexpr int64_t kQ8aBlock = 32;
inline constexpr float kQ8aTiny = 0x1p-100f;  // below it a block is zero: 127 / amax stays far from overflow

struct Q8aBlock {
  int8_t q[kQ8aBlock];  // -127..127
  float d;              // scale
  float s;              // d * float(h0 + h1)
  int32_t h0, h1;       // sums of q[0..15] and q[16..31]
};

// The largest |x|, compared as bit patterns with the sign cleared, so that NaN and infinity win.
inline float amax_32(const float* x) {  // [32]
  uint32_t most = 0;
  for (int64_t i = 0; i < kQ8aBlock; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
    if (bits > most) most = bits;
  }
  return std::bit_cast<float>(most);
}

inline void quantize_q8a(const float* x,   // [k]
                         int64_t k,        // Requires: a multiple of 32
                         Q8aBlock* out) {  // [k / 32]
  for (int64_t b = 0; b < k / kQ8aBlock; ++b, x += kQ8aBlock, ++out) {
    const float amax = amax_32(x);
    *out = Q8aBlock{};
    if (!(amax <= std::numeric_limits<float>::max())) {
      out->d = out->s = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    if (amax < kQ8aTiny) continue;
    const float id = 127.0f / amax;
    out->d = amax / 127.0f;
    for (int64_t i = 0; i < kQ8aBlock; ++i) {
      const int32_t q = static_cast<int32_t>(std::rint(x[i] * id));
      out->q[i] = static_cast<int8_t>(q);
      (i < 16 ? out->h0 : out->h1) += q;
    }
    out->s = out->d * static_cast<float>(out->h0 + out->h1);
  }
}

}  // namespace minfer::ref
