#include "sample/adaptive_p.h"

#include <algorithm>
#include <cmath>

namespace minfer {

AdaptiveAverage adaptive_start(float target, float decay) {
  const double weight = 1 / (1 - static_cast<double>(decay));
  return {static_cast<double>(target) * weight, weight};
}

AdaptiveAverage adaptive_next(AdaptiveAverage average, float p, float decay) {
  const auto d = static_cast<double>(decay);
  return {static_cast<double>(p) + d * average.sum, 1 + d * average.weight};
}

float adaptive_aim(AdaptiveAverage average, float target) {
  return static_cast<float>(std::clamp(2 * static_cast<double>(target) - average.sum / average.weight, 0.0, 1.0));
}

void apply_adaptive_p(Candidates& c, float aim) {
  for (Candidate& x : c.items()) {
    const float d = std::fabs(x.p - aim) / 0.3f;
    x.logit = 5.0f - 10.0f * d * d / (1.0f + d);
  }
  if (c.sorted()) c.resort();
}

}  // namespace minfer
