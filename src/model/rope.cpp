// Inverse frequencies of the rotary embedding, with linear, YaRN and per-frequency (Llama 3) scaling.
// Source: Su et al. 2021 (RoPE); Peng et al. 2023 (YaRN, section 3); computed in f64 with our own exp and log, so that
// every
//         machine makes the same table.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/fmath.h"
#include "model/hparams.h"

namespace minfer {

std::vector<double> rope_inv_freq(const HParams& hp, double base, const float* factors, float* mscale) {
  const int half = hp.n_rot / 2;
  const double ln_base = log_f64(base);
  std::vector<double> inv(static_cast<size_t>(half));
  *mscale = 1.0f;

  double low = 0, high = 0;  // YaRN's correction range in pair indices
  if (hp.rope_scaling == RopeScaling::kYarn) {
    // The pair whose wavelength makes `rotations` turns over the original context.
    auto pair_of = [&](double rotations) {
      return hp.n_rot * log_f64(hp.rope_ctx_orig / (rotations * 2 * std::numbers::pi)) / (2 * ln_base);
    };
    low = std::max(0.0, std::floor(pair_of(hp.yarn_beta_fast)));
    high = std::min(static_cast<double>(hp.n_rot - 1), std::ceil(pair_of(hp.yarn_beta_slow)));
    if (low == high) high += 0.001;  // as in the paper's code: no division by zero
    *mscale = static_cast<float>(hp.yarn_attn_factor * (hp.rope_factor > 1 ? 1 + 0.1 * log_f64(hp.rope_factor) : 1.0));
  }
  for (int i = 0; i < half; ++i) {
    double f = exp_f64(-(2.0 * i / hp.n_rot) * ln_base);
    if (factors != nullptr) f /= static_cast<double>(factors[i]);
    if (hp.rope_scaling == RopeScaling::kLinear) {
      f /= hp.rope_factor;
    } else if (hp.rope_scaling == RopeScaling::kYarn) {
      const double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);  // 0: keep, 1: interpolate
      f = f / hp.rope_factor * ramp + f * (1 - ramp);
    }
    inv[static_cast<size_t>(i)] = f;
  }
  return inv;
}

}  // namespace minfer
