// Internal to quant/: the searches for the scale (and minimum) of a block that the encoders share.
// All of them minimise sum w * (x - decoded)^2. Fixed lanes and no library rounding calls, so that the same codes
// come out on every machine.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/f16.h"
#include "quant/blocks.h"

namespace minfer::quant {

// Four lanes: one SSE or NEON register, so the sums have the same order everywhere.
using V4 = float __attribute__((vector_size(16)));

inline V4 splat(float v) { return V4{v, v, v, v}; }
inline V4 load4(const float* p) {
  V4 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store4(V4 v, float* p) { std::memcpy(p, &v, sizeof v); }
inline float lane_sum(V4 v) { return (v[0] + v[1]) + (v[2] + v[3]); }
inline V4 clamp(V4 v, V4 lo, V4 hi) {
  v = v < lo ? lo : v;
  return v > hi ? hi : v;
}
// To nearest even for |v| <= 2^22: adding 1.5 * 2^23 leaves no room for a fraction.
inline V4 round_even(V4 v) {
  const V4 magic = splat(0x1.8p23f);
  return (v + magic) - magic;
}
inline float round_even(float v) { return (v + 0x1.8p23f) - 0x1.8p23f; }
inline float clamp(float v, float lo, float hi) { return v < lo ? lo : v > hi ? hi : v; }

inline constexpr float kF16Max = 65504.0f;

// A range below this is stored as zero width: the smallest step of an f16 scale is 2^-24, half of it 2^-25.
inline constexpr float kTinyRange = 0x1p-26f;

// Nearest f16; magnitudes above the largest finite f16 give that (the row was checked to fit, so only a search's
// wish for a slightly larger scale can reach it).
inline uint16_t to_f16_finite(float v) { return f32_to_f16(clamp(v, -kF16Max, kF16Max)); }

// The next f16 away from zero when the nearest is nearer to zero than v. A super-block's d rounded so needs no
// sub-scale beyond its range, which matters where f16 is subnormal and coarse: weights around 0.02 have such a d in
// q6_k.
inline uint16_t to_f16_away(float v) {
  const uint16_t h = to_f16_finite(v);
  const float f = f16_to_f32(h);
  const bool short_of = (f < 0 ? -f : f) < (v < 0 ? -v : v);
  return short_of && (h & 0x7fff) < 0x7bff ? static_cast<uint16_t>(h + 1) : h;
}

// The weight of each value's squared error: importance * sqrt(mean(x^2) + x^2), scaled by the block's maxima. Large
// values count more, as their products do; the mean keeps the small ones from being ignored. Every weight is > 0.
void error_weights(const float* x,           // [n]
                   const float* importance,  // [n] or null
                   int n,                    // a multiple of 4
                   float* w);                // [n]

// value = scale * q + min, q in 0..q_max.
struct Affine {
  float scale;  // >= 0
  float min;
};

// With min_negative the minimum is <= 0 (q2_k, q4_k, q5_k); otherwise any.
Affine search_affine(const float* x,  // [n]
                     const float* w,  // [n]
                     int n,           // a multiple of 4
                     int q_max, bool min_negative);

// Codes of value = scale * q + min; all zero when scale is.
void affine_codes(const float* x,  // [n]
                  int n, float scale, float min, int q_max,
                  uint8_t* q);  // [n]

// A super-block of 256 values with `sub_len` values per sub-block: value = (d * sc) * q - (dmin * m).
struct AffineSuper {
  uint16_t d;     // f16
  uint16_t dmin;  // f16
  uint8_t sc[16];
  uint8_t m[16];
  uint8_t q[kSuper];
};

AffineSuper search_affine_super(const float* x,  // [256]
                                const float* w,  // [256]
                                int sub_len,     // 16 or 32
                                int sc_max,      // scales and minimums are 0..sc_max
                                int q_max);

}  // namespace minfer::quant
