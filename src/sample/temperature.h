// Temperature, fixed or by the entropy of what is left.
#pragma once

#include "sample/candidates.h"

namespace minfer {

// logit = logit / temperature; where the largest would overflow, (logit - largest) / temperature. What becomes
// -infinity is dropped. Requires: temperature > 0.
void apply_temperature(Candidates& c, float temperature);

// Source: dynamic temperature: low + (high - low) * (entropy / log(candidates))^exponent, low = max(0, temperature -
// range), high = temperature + range. A result of 0 leaves the largest alone.
void apply_dynamic_temperature(Candidates& c, float temperature, float range, float exponent);

}  // namespace minfer
