#include "sample/temperature.h"

#include <algorithm>
#include <cmath>

#include "base/fmath.h"

namespace minfer {

void apply_temperature(Candidates& c, float temperature) {
  if (c.size() == 0) return;
  const float top = c.largest();
  const float zero = std::isinf(top / temperature) ? top : 0.0f;
  for (Candidate& x : c.items()) x.logit = (x.logit - zero) / temperature;
  c.drop_if([](const Candidate& x) { return x.logit == -INFINITY; });
}

void apply_dynamic_temperature(Candidates& c, float temperature, float range, float exponent) {
  if (c.size() < 2) return;
  c.softmax();
  double entropy = 0;
  for (const Candidate& x : c.items()) {
    if (x.p > 0) entropy -= static_cast<double>(x.p) * log_f64(static_cast<double>(x.p));
  }
  const double share = std::max(0.0, entropy / log_f64(static_cast<double>(c.size())));
  double power = 1;  // of 0 too when the exponent is 0
  if (exponent > 0) power = share > 0 ? pow_f64(share, static_cast<double>(exponent)) : 0;
  const double t = static_cast<double>(temperature), r = static_cast<double>(range), low = std::max(0.0, t - r);
  const auto found = static_cast<float>(low + (t + r - low) * power);
  if (found > 0) {
    apply_temperature(c, found);
  } else {
    c.keep_head(1);
  }
}

}  // namespace minfer
