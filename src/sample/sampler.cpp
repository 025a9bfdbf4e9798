// The chain: bias, penalties, top-k, typical, top-p, min-p, temperature, draw.
#include "sample/sampler.h"

#include <algorithm>
#include <cmath>

#include "sample/philox.h"

namespace minfer {
namespace {

bool before(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

Error bad_logits(float value, size_t id) {
  return make_error(
      ErrorCode::kInternal,
      "[sample] logit of token {} is {}, expected a finite number: the model's weights or activations overflowed", id,
      value);
}

}  // namespace

Status check_sampling(const SamplingParams& p) {
  struct Rule {
    const char* name;
    float value, lo, hi;
    bool lo_open;
  };
  // A penalty below 0.01 or above 100 could take a logit out of f32's range.
  const Rule rules[] = {
      {"temperature", p.temperature, 0, 100, false},
      {"top_k", static_cast<float>(p.top_k), 0, 1e9f, false},
      {"top_p", p.top_p, 0, 1, true},
      {"min_p", p.min_p, 0, 1, false},
      {"typical_p", p.typical_p, 0, 1, true},
      {"repeat_penalty", p.repeat_penalty, 0.01f, 100, false},
      {"frequency_penalty", p.frequency_penalty, -100, 100, false},
      {"presence_penalty", p.presence_penalty, -100, 100, false},
      {"repeat_last_n", static_cast<float>(p.repeat_last_n), -1, 1e9f, false},
  };
  for (const Rule& r : rules) {
    if (r.value <= r.hi && (r.lo_open ? r.value > r.lo : r.value >= r.lo)) continue;
    return make_error(ErrorCode::kInvalidArgument, "[sample] {}: found {}, expected {}{} to {}", r.name, r.value,
                      r.lo_open ? "more than " : "", r.lo, r.hi);
  }
  for (const auto& [id, bias] : p.logit_bias) {
    if (id < 0 || std::isnan(bias) || bias == INFINITY) {
      return make_error(ErrorCode::kInvalidArgument,
                        "[sample] logit_bias of token {}: found {}, expected a token id and a number or -infinity", id,
                        bias);
    }
  }
  return {};
}

Result<int32_t> argmax(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) return bad_logits(logits[i], i);
    if (logits[i] > logits[best]) best = i;
  }
  if (logits.empty() || std::isinf(logits[best])) return bad_logits(logits.empty() ? NAN : logits[best], best);
  return static_cast<int32_t>(best);
}

Result<int32_t> Sampler::sample(std::span<const float> logits, std::span<const int32_t> history, uint64_t position) {
  adjusted_.assign(logits.begin(), logits.end());
  for (const auto& [id, bias] : params_.logit_bias) {
    if (static_cast<size_t>(id) >= logits.size()) {
      return make_error(ErrorCode::kOutOfRange, "[sample] logit_bias: token id {}, expected 0 to {}", id,
                        logits.size() - 1);
    }
    adjusted_[static_cast<size_t>(id)] += bias;
  }
  apply_penalties(adjusted_, history, params_);
  const int32_t best = MINFER_TRY(argmax(adjusted_));
  if (params_.temperature == 0.0f) return best;

  candidates_.clear();
  for (size_t i = 0; i < adjusted_.size(); ++i) {
    if (adjusted_[i] != -INFINITY) candidates_.push_back({static_cast<int32_t>(i), adjusted_[i], 0});
  }
  if (params_.top_k > 0 && static_cast<size_t>(params_.top_k) < candidates_.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + params_.top_k, candidates_.end(), before);
    candidates_.resize(static_cast<size_t>(params_.top_k));
  }
  std::sort(candidates_.begin(), candidates_.end(), before);
  keep_typical(candidates_, params_.typical_p);
  keep_top_p(candidates_, params_.top_p);
  keep_min_p(candidates_, params_.min_p);
  for (Candidate& c : candidates_) c.logit /= params_.temperature;
  if (std::isinf(candidates_[0].logit)) return best;  // a temperature so small that the division overflows is greedy
  softmax(candidates_);
  return draw(candidates_, uniform_at(params_.seed, position));
}

}  // namespace minfer
