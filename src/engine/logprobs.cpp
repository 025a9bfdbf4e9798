#include "engine/logprobs.h"

#include <algorithm>

#include "base/fmath.h"

namespace minfer {

TokenLogprobs logprobs_of(std::span<const float> logits, int32_t id, int32_t top) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float x : logits) sum += static_cast<double>(exp_f32(x - largest));
  const double log_sum = log_f64(sum);
  const auto logprob = [&](float x) {
    return static_cast<float>(static_cast<double>(x) - static_cast<double>(largest) - log_sum);
  };
  TokenLogprobs out;
  out.logprob = logprob(logits[static_cast<size_t>(id)]);
  if (top <= 0) return out;
  std::vector<int32_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const auto n = std::min(static_cast<size_t>(top), order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
                    [&](int32_t a, int32_t b) {
                      const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  for (size_t i = 0; i < n; ++i) out.top.emplace_back(order[i], logprob(logits[static_cast<size_t>(order[i])]));
  return out;
}

}  // namespace minfer
