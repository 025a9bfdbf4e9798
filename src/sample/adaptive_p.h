// Adaptive-p: prefers ids whose probability is near a target, which moves so that the drawn ids meet it on average.
// Source: llama.cpp pull request 17927.
#pragma once

#include "sample/candidates.h"

namespace minfer {

// An exponential average of the probabilities, before the transformation, of the ids drawn so far.
struct AdaptiveAverage {
  double sum = 0, weight = 0;  // sum / weight
  bool operator==(const AdaptiveAverage&) const = default;
};
AdaptiveAverage adaptive_start(float target, float decay);  // as if every id before had met the target
AdaptiveAverage adaptive_next(AdaptiveAverage average, float p, float decay);

// The probability to aim at now.
float adaptive_aim(AdaptiveAverage average, float target);

// p of the candidates = their probabilities (softmax()); their logits become 5 - 10 d^2 / (1 + d), d = |p - aim| / 0.3:
// quadratic near the aim, linear far from it.
void apply_adaptive_p(Candidates& c, float aim);

}  // namespace minfer
