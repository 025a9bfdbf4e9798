// Error weights and the searches for scale and minimum.
#include "quant/search.h"

#include <cmath>

namespace minfer::quant {
namespace {

// The smallest share of the largest importance that a value keeps: columns never seen in calibration (an expert that
// was not chosen) must still be stored sensibly.
constexpr float kImportanceFloor = 0x1p-20f;

// Weighted squared error of a sub-block under value = scale * q - sub, codes chosen as affine_codes does.
float affine_error(const float* x, const float* w, int n, float scale, float sub, float q_max) {
  const V4 inv = splat(scale > 0 ? 1 / scale : 0);
  const V4 s = splat(scale), m = splat(sub), lo = splat(0), hi = splat(q_max);
  V4 error = splat(0);
  for (int i = 0; i < n; i += 4) {
    const V4 v = load4(x + i);
    const V4 q = round_even(clamp((v + m) * inv, lo, hi));
    const V4 e = v - (s * q - m);
    error += load4(w + i) * e * e;
  }
  return lane_sum(error);
}

struct SuperState {
  float d, dmin;
  uint8_t sc[16], m[16];
  float error;
};

// Scales and minimums of all sub-blocks under given d and dmin: the nearest to the wish or a neighbour of it,
// whichever gives the smallest error.
void choose_scales(const float* x, const float* w, int sub_len, int sc_max, int q_max, const Affine* wish,
                   SuperState& st) {
  st.error = 0;
  const auto nearest = [&](float v, float unit) {
    return unit > 0 ? static_cast<int>(round_even(clamp(v / unit, 0, static_cast<float>(sc_max)))) : 0;
  };
  for (int s = 0; s < kSuper / sub_len; ++s) {
    const float* xs = x + s * sub_len;
    const float* ws = w + s * sub_len;
    const int sc0 = nearest(wish[s].scale, st.d);
    const int m0 = nearest(-wish[s].min, st.dmin);
    float best = -1;
    for (int sc = sc0 > 0 ? sc0 - 1 : 0; sc <= sc0 + 1 && sc <= sc_max; ++sc) {
      for (int m = m0 > 0 ? m0 - 1 : 0; m <= m0 + 1 && m <= sc_max; ++m) {
        const float e = affine_error(xs, ws, sub_len, st.d * static_cast<float>(sc), st.dmin * static_cast<float>(m),
                                     static_cast<float>(q_max));
        if (best < 0 || e < best) {
          best = e;
          st.sc[s] = static_cast<uint8_t>(sc);
          st.m[s] = static_cast<uint8_t>(m);
        }
      }
    }
    st.error += best;
  }
}

void super_codes(const float* x, int sub_len, int q_max, const SuperState& st, uint8_t* q) {
  for (int s = 0; s < kSuper / sub_len; ++s) {
    affine_codes(x + s * sub_len, sub_len, st.d * static_cast<float>(st.sc[s]),
                 -(st.dmin * static_cast<float>(st.m[s])), q_max, q + s * sub_len);
  }
}

// The least-squares d and dmin for fixed codes: minimises sum w (x - d*A + dmin*B)^2 with A = sc * q, B = m.
void refit(const float* x, const float* w, int sub_len, const SuperState& st, const uint8_t* q, float& d, float& dmin) {
  double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
  for (int i = 0; i < kSuper; ++i) {
    const int s = i / sub_len;
    const double a = st.sc[s] * q[i], b = st.m[s], wx = static_cast<double>(w[i]) * x[i];
    aa += w[i] * a * a, ab += w[i] * a * b, bb += w[i] * b * b, xa += wx * a, xb += wx * b;
  }
  const double det = aa * bb - ab * ab;
  double fit_d = aa > 0 ? xa / aa : 0, fit_min = 0;
  if (det > 1e-9 * aa * bb) {
    const double d2 = (xa * bb - xb * ab) / det, m2 = (xa * ab - xb * aa) / det;
    if (m2 >= 0) fit_d = d2, fit_min = m2;
  } else if (aa == 0 && bb > 0 && xb < 0) {
    fit_min = -xb / bb;
  }
  d = fit_d > 0 ? static_cast<float>(fit_d) : 0;
  dmin = static_cast<float>(fit_min);
}

}  // namespace

void error_weights(const float* x, const float* importance, int n, float* w) {
  float amax = 0, imax = 0;
  for (int i = 0; i < n; ++i) {
    amax = std::fabs(x[i]) > amax ? std::fabs(x[i]) : amax;
    if (importance) imax = importance[i] > imax ? importance[i] : imax;
  }
  if (amax == 0) {
    for (int i = 0; i < n; ++i) w[i] = 1;
    return;
  }
  V4 sum = splat(0);
  const V4 unit = splat(amax);
  for (int i = 0; i < n; i += 4) {
    const V4 y = load4(x + i) / unit;
    sum += y * y;
    store4(y * y, w + i);
  }
  const float mean = lane_sum(sum) / static_cast<float>(n);
  for (int i = 0; i < n; ++i) {
    w[i] = std::sqrt(mean + w[i]);
    if (imax > 0) {
      const float share = importance[i] / imax;
      w[i] *= share > kImportanceFloor ? share : kImportanceFloor;
    }
  }
}

void affine_codes(const float* x, int n, float scale, float min, int q_max, uint8_t* q) {
  const V4 inv = splat(scale > 0 ? 1 / scale : 0);
  const V4 m = splat(min), lo = splat(0), hi = splat(static_cast<float>(q_max));
  for (int i = 0; i < n; i += 4) {
    const V4 r = round_even(clamp((load4(x + i) - m) * inv, lo, hi));
    for (int l = 0; l < 4; ++l) q[i + l] = static_cast<uint8_t>(r[l]);
  }
}

Affine search_affine(const float* x, const float* w, int n, int q_max, bool min_negative) {
  float lo = x[0], hi = x[0];
  for (int i = 1; i < n; ++i) {
    lo = x[i] < lo ? x[i] : lo;
    hi = x[i] > hi ? x[i] : hi;
  }
  if (min_negative && lo > 0) lo = 0;
  if (!(hi - lo >= kTinyRange)) return {0, lo};

  V4 sw = splat(0), swx = splat(0);
  for (int i = 0; i < n; i += 4) {
    sw += load4(w + i);
    swx += load4(w + i) * load4(x + i);
  }
  const float sum_w = lane_sum(sw), sum_wx = lane_sum(swx);
  const V4 zero = splat(0), top = splat(static_cast<float>(q_max)), base = splat(lo);

  Affine best{(hi - lo) / static_cast<float>(q_max), lo};
  float best_error = affine_error(x, w, n, best.scale, -best.min, static_cast<float>(q_max));
  // Widths from one step narrower than the range to one step wider, in tenths of a step: outside it no better fit
  // turned up for normal or heavy-tailed values. A 2-bit code has half the reach: a step is a third of its range.
  const int reach = q_max <= 3 ? 5 : 10;
  for (int k = -reach; k <= reach; ++k) {
    const V4 inv = splat((static_cast<float>(q_max) + 0.1f * static_cast<float>(k)) / (hi - lo));
    V4 wq = zero, wqq = zero, wqx = zero;
    for (int i = 0; i < n; i += 4) {
      const V4 v = load4(x + i), wi = load4(w + i);
      const V4 q = round_even(clamp((v - base) * inv, zero, top));
      const V4 t = wi * q;
      wq += t;
      wqq += t * q;
      wqx += t * v;
    }
    const float sq = lane_sum(wq), sqq = lane_sum(wqq), sqx = lane_sum(wqx);
    const float det = sum_w * sqq - sq * sq;
    if (!(det > 0)) continue;
    Affine fit{(sum_w * sqx - sq * sum_wx) / det, (sqq * sum_wx - sq * sqx) / det};
    if (min_negative && fit.min > 0) fit = {sqx / sqq, 0};
    if (!(fit.scale > 0)) continue;
    const float error = affine_error(x, w, n, fit.scale, -fit.min, static_cast<float>(q_max));
    if (error < best_error) best = fit, best_error = error;
  }
  return best;
}

AffineSuper search_affine_super(const float* x, const float* w, int sub_len, int sc_max, int q_max) {
  Affine wish[16];
  float scale_top = 0, min_top = 0;
  for (int s = 0; s < kSuper / sub_len; ++s) {
    wish[s] = search_affine(x + s * sub_len, w + s * sub_len, sub_len, q_max, true);
    scale_top = wish[s].scale > scale_top ? wish[s].scale : scale_top;
    min_top = -wish[s].min > min_top ? -wish[s].min : min_top;
  }
  AffineSuper out{};
  float d = scale_top / static_cast<float>(sc_max), dmin = min_top / static_cast<float>(sc_max);
  float best_error = -1;
  // The second round starts from the least-squares d and dmin of the first one's codes; a third gains < 0.1 %.
  for (int round = 0; round < 2; ++round) {
    const uint16_t d16 = round == 0 ? to_f16_away(d) : to_f16_finite(d);
    const uint16_t dmin16 = round == 0 ? to_f16_away(dmin) : to_f16_finite(dmin);
    if (round > 0 && d16 == out.d && dmin16 == out.dmin) break;
    SuperState st{};
    st.d = f16_to_f32(d16);
    st.dmin = f16_to_f32(dmin16);
    choose_scales(x, w, sub_len, sc_max, q_max, wish, st);
    if (best_error >= 0 && !(st.error < best_error)) break;
    best_error = st.error;
    out.d = d16;
    out.dmin = dmin16;
    std::memcpy(out.sc, st.sc, sizeof out.sc);
    std::memcpy(out.m, st.m, sizeof out.m);
    super_codes(x, sub_len, q_max, st, out.q);
    refit(x, w, sub_len, st, out.q, d, dmin);
  }
  return out;
}

}  // namespace minfer::quant
