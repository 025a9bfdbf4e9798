// Internal to quant/: scale search for formats whose value is scale * level, level from a fixed set of integers around
// zero: a range of integers (q4_0, q5_0, q3_k, q6_k) or sixteen uneven levels (iq4_nl, iq4_xs).
// Threads: pure functions.
#pragma once

#include <array>
#include <cmath>

#include "quant/search.h"

namespace minfer::quant {

// Levels lo..hi, code = level - lo.
struct UniformGrid {
  float lo, hi;

  V4 nearest(V4 v) const { return round_even(clamp(v, splat(lo), splat(hi))); }
  uint8_t code(float level) const { return static_cast<uint8_t>(level - lo); }

  // Where the value of largest magnitude may land: within one step of the low end, or half a step of the high end.
  static constexpr int kTargets = 25;
  float target(int k) const {
    return k < 19 ? lo + 0.1f * static_cast<float>(k - 9) : hi + 0.2f * (static_cast<float>(k - 19) - 2.5f);
  }
};

struct Iq4Grid {
  static constexpr std::array<uint8_t, 256> kCodes = [] {
    std::array<uint8_t, 256> t{};
    for (int i = 0; i < 16; ++i) t[static_cast<size_t>(kIq4Values[i] + 128)] = static_cast<uint8_t>(i);
    return t;
  }();

  V4 nearest(V4 v) const {
    V4 level = splat(kIq4Values[0]);
    for (int i = 0; i + 1 < 16; ++i) {
      const V4 middle = splat(0.5f * static_cast<float>(kIq4Values[i] + kIq4Values[i + 1]));
      const V4 gap = splat(static_cast<float>(kIq4Values[i + 1] - kIq4Values[i]));
      level += v > middle ? gap : splat(0);
    }
    return level;
  }
  uint8_t code(float level) const { return kCodes[static_cast<size_t>(static_cast<int>(level) + 128)]; }

  // The ends, -127 and 113, and some units around them: a step there is about 20 units wide.
  static constexpr int kTargets = 22;
  float target(int k) const { return static_cast<float>(k < 15 ? -127 + (k - 7) : 113 + 2 * (k - 18)); }
};

// The scale that minimises the weighted squared error, before it is rounded to its storage.
template <typename Grid>
float search_scale(const float* x,  // [n]
                   const float* w,  // [n]
                   int n,           // a multiple of 4
                   const Grid& grid) {
  float peak = 0;
  for (int i = 0; i < n; ++i) peak = std::fabs(x[i]) > std::fabs(peak) ? x[i] : peak;
  if (std::fabs(peak) < kTinyRange) return 0;
  float best = 0, best_gain = 0;
  for (int k = 0; k < Grid::kTargets; ++k) {
    const V4 inv = splat(grid.target(k) / peak);
    V4 xq = splat(0), qq = splat(0);
    for (int i = 0; i < n; i += 4) {
      const V4 v = load4(x + i);
      const V4 q = grid.nearest(v * inv);
      const V4 t = load4(w + i) * q;
      xq += t * v;
      qq += t * q;
    }
    const float sxq = lane_sum(xq), sqq = lane_sum(qq);
    // With the least-squares scale sxq / sqq the error is sum w x^2 - sxq^2 / sqq.
    if (sqq > 0 && sxq * (sxq / sqq) > best_gain) {
      best = sxq / sqq;
      best_gain = sxq * best;
    }
  }
  return best;
}

// Weighted squared error under a fixed scale.
template <typename Grid>
float scale_error(const float* x, const float* w, int n, float scale, const Grid& grid) {
  const V4 inv = splat(scale != 0 ? 1 / scale : 0), s = splat(scale);
  V4 error = splat(0);
  for (int i = 0; i < n; i += 4) {
    const V4 v = load4(x + i);
    const V4 e = v - s * grid.nearest(v * inv);
    error += load4(w + i) * e * e;
  }
  return lane_sum(error);
}

// Codes under a fixed scale; the code nearest to zero when the scale is zero.
template <typename Grid>
void scale_codes(const float* x,  // [n]
                 int n, float scale, const Grid& grid,
                 uint8_t* code,   // [n]
                 float* level) {  // [n] or null: the levels themselves
  const V4 inv = splat(scale != 0 ? 1 / scale : 0);
  for (int i = 0; i < n; i += 4) {
    const V4 q = grid.nearest(load4(x + i) * inv);
    for (int l = 0; l < 4; ++l) code[i + l] = grid.code(q[l]);
    if (level) store4(q, level + i);
  }
}

// A super-block of 256 values: value = (d * sc) * level, sc in sc_lo..sc_hi, sc_lo < 0.
struct SymmetricSuper {
  uint16_t d;  // f16, either sign
  int8_t sc[16];
  uint8_t code[kSuper];
};

template <typename Grid>
SymmetricSuper search_symmetric_super(const float* x,  // [256]
                                      const float* w,  // [256]
                                      int sub_len,     // 16 or 32
                                      int sc_lo, int sc_hi, const Grid& grid) {
  const int subs = kSuper / sub_len;
  float wish[16], peak = 0;
  for (int s = 0; s < subs; ++s) {
    wish[s] = search_scale(x + s * sub_len, w + s * sub_len, sub_len, grid);
    peak = std::fabs(wish[s]) > std::fabs(peak) ? wish[s] : peak;
  }
  SymmetricSuper out{};
  float level[kSuper];
  // The largest scale takes the low end, which reaches one further than the high end.
  float d = peak / static_cast<float>(sc_lo);
  float best_error = -1;
  for (int round = 0; round < 2; ++round) {  // the second round from the least-squares d of the first one's codes
    const uint16_t d16 = round == 0 ? to_f16_away(d) : to_f16_finite(d);
    const float df = f16_to_f32(d16);
    if (round > 0 && d16 == out.d) break;
    SymmetricSuper next{};
    next.d = d16;
    float error = 0;
    for (int s = 0; s < subs; ++s) {
      const float* xs = x + s * sub_len;
      const float* ws = w + s * sub_len;
      const float ratio = df != 0 ? wish[s] / df : 0;
      const int sc0 = static_cast<int>(round_even(clamp(ratio, static_cast<float>(sc_lo), static_cast<float>(sc_hi))));
      float best = -1;
      for (int sc = sc0 > sc_lo ? sc0 - 1 : sc_lo; sc <= sc0 + 1 && sc <= sc_hi; ++sc) {
        const float e = scale_error(xs, ws, sub_len, df * static_cast<float>(sc), grid);
        if (best < 0 || e < best) best = e, next.sc[s] = static_cast<int8_t>(sc);
      }
      error += best;
      scale_codes(xs, sub_len, df * static_cast<float>(next.sc[s]), grid, next.code + s * sub_len, level + s * sub_len);
    }
    if (best_error >= 0 && !(error < best_error)) break;
    best_error = error;
    out = next;
    double xa = 0, aa = 0;
    for (int i = 0; i < kSuper; ++i) {
      const double a = static_cast<double>(out.sc[i / sub_len]) * level[i];
      xa += w[i] * a * x[i];
      aa += w[i] * a * a;
    }
    if (!(aa > 0)) break;
    d = static_cast<float>(xa / aa);
  }
  return out;
}

}  // namespace minfer::quant
