#include "engine/logprobs.h"

#include <algorithm>

#include "base/fmath.h"

namespace minfer {

namespace {

// The logarithm of the softmax of a row, a logit at a time.
class LogSoftmax {
 public:
  explicit LogSoftmax(std::span<const float> logits) : largest_(*std::max_element(logits.begin(), logits.end())) {
    double sum = 0;
    for (float x : logits) sum += static_cast<double>(exp_f32(x - largest_));
    log_sum_ = log_f64(sum);
  }
  float operator()(float logit) const {
    return static_cast<float>(static_cast<double>(logit) - static_cast<double>(largest_) - log_sum_);
  }

 private:
  float largest_;
  double log_sum_;
};

}  // namespace

float logprob_of(std::span<const float> logits, int32_t id) {
  return LogSoftmax(logits)(logits[static_cast<size_t>(id)]);
}

TokenLogprobs logprobs_of(std::span<const float> logits, int32_t id, int32_t top) {
  const LogSoftmax logprob(logits);
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

TokenLogprobs sampled_logprobs(const Sampler& sampler, int32_t id, int32_t top) {
  TokenLogprobs out;
  out.logprob = sampler.logprob(id);
  if (top <= 0) return out;
  for (const Candidate& x : sampler.distribution(static_cast<size_t>(top))) {
    if (x.p == 0.0f) break;  // too unlikely for an f32: never drawn
    out.top.emplace_back(x.id, static_cast<float>(log_f64(static_cast<double>(x.p))));
  }
  return out;
}

}  // namespace minfer
