// The chain. A draw makes up to two random numbers, each its own stream at the position.
#include "sample/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/fmath.h"
#include "sample/filters.h"
#include "sample/mirostat.h"
#include "sample/philox.h"
#include "sample/temperature.h"

namespace minfer {
namespace {

constexpr uint32_t kDrawStream = 0, kXtcStream = 1;

Error bad_logits(float value, size_t id) {
  return make_error(
      ErrorCode::kInternal,
      "[sample] logit of token {} is {}, expected a finite number: the model's weights or activations overflowed", id,
      value);
}

bool active(SamplerStage stage, const SamplingParams& p) {
  switch (stage) {
    case SamplerStage::kPenalties: return Penalties::active(p);
    case SamplerStage::kDry: return Dry::active(p);
    case SamplerStage::kTopNSigma: return p.top_n_sigma > 0.0f;
    case SamplerStage::kTopK: return p.top_k > 0;
    case SamplerStage::kTypicalP: return p.typical_p < 1.0f;
    case SamplerStage::kTopP: return p.top_p < 1.0f;
    case SamplerStage::kMinP: return p.min_p > 0.0f;
    case SamplerStage::kXtc: return p.xtc_probability > 0.0f && p.xtc_threshold <= 0.5f;
    case SamplerStage::kTemperature: return p.temperature != 1.0f || p.dynatemp_range > 0.0f;
    case SamplerStage::kAdaptiveP: return p.adaptive_target >= 0.0f;
  }
  return false;
}

bool changes_row(SamplerStage stage) { return stage == SamplerStage::kPenalties || stage == SamplerStage::kDry; }

// In blocks, so that the compiler compares many values at once; the block of the largest is looked through again.
Result<int32_t> argmax_of_all(std::span<const float> logits) {
  constexpr size_t kBlock = 1024, kLanes = 16;
  if (logits.empty()) return bad_logits(NAN, 0);
  float best = logits[0];
  size_t best_block = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const auto block = logits.subspan(begin, std::min(kBlock, logits.size() - begin));
    std::array<float, kLanes> most;
    std::array<int32_t, kLanes> nans{};
    most.fill(-INFINITY);
    size_t i = 0;
    for (; i + kLanes <= block.size(); i += kLanes) {
      for (size_t l = 0; l < kLanes; ++l) {
        const float x = block[i + l];
        most[l] = x > most[l] ? x : most[l];
        nans[l] |= x != x ? 1 : 0;
      }
    }
    for (; i < block.size(); ++i) {
      most[0] = block[i] > most[0] ? block[i] : most[0];
      nans[0] |= std::isnan(block[i]) ? 1 : 0;
    }
    if (*std::max_element(nans.begin(), nans.end()) != 0) {
      const auto nan = std::find_if(block.begin(), block.end(), [](float x) { return std::isnan(x); });
      return bad_logits(*nan, begin + static_cast<size_t>(nan - block.begin()));
    }
    const float m = *std::max_element(most.begin(), most.end());
    if (m > best) best = m, best_block = begin;
  }
  const auto from = logits.begin() + static_cast<std::ptrdiff_t>(best_block);
  const auto at = static_cast<size_t>(std::find(from, logits.end(), best) - logits.begin());
  if (std::isinf(best)) return bad_logits(best, at);
  return static_cast<int32_t>(at);
}

}  // namespace

Result<int32_t> argmax(std::span<const float> logits, TokenMask mask) {
  if (mask.empty()) return argmax_of_all(logits);
  constexpr size_t kNone = SIZE_MAX;
  size_t best = kNone, nan = kNone;
  float largest = -INFINITY;
  for_each_allowed(mask, logits.size(), [&](size_t i) {
    const float x = logits[i];
    if (std::isnan(x) && nan == kNone) nan = i;
    if (x > largest) largest = x, best = i;
  });
  if (nan != kNone) return bad_logits(logits[nan], nan);
  if (best == kNone || std::isinf(largest)) return bad_logits(largest, best == kNone ? 0 : best);
  return static_cast<int32_t>(best);
}

Sampler::Sampler(SamplingParams params)
    : params_(std::move(params)),
      dry_(params_),
      state_{2 * static_cast<double>(params_.mirostat_tau),
             adaptive_start(params_.adaptive_target, params_.adaptive_decay)} {
  const bool greedy = params_.temperature == 0.0f;
  for (SamplerStage stage : params_.samplers) {
    if (!active(stage, params_)) continue;
    if (changes_row(stage) && (stages_.empty() || greedy)) {
      first_.push_back(stage);
    } else if (params_.mirostat == 0 || stage == SamplerStage::kTemperature) {
      stages_.push_back(stage);
    }
  }
}

// The row after bias and the first stages; the logits themselves if none of them does anything. What they do to an id
// does not depend on other ids, so those that the mask forbids may be in it.
Result<std::span<const float>> Sampler::adjusted(std::span<const float> logits, std::span<const int32_t> history) {
  if (params_.logit_bias.empty() && (first_.empty() || history.empty())) return logits;
  row_.assign(logits.begin(), logits.end());
  for (const auto& [id, bias] : params_.logit_bias) {
    if (static_cast<size_t>(id) >= row_.size()) {
      return make_error(ErrorCode::kOutOfRange, "[sample] logit_bias: token id {}, expected 0 to {}", id,
                        row_.size() - 1);
    }
    row_[static_cast<size_t>(id)] += bias;
  }
  for (SamplerStage stage : first_) {
    if (stage == SamplerStage::kDry) {
      dry_.apply(row_, history, params_);
    } else {
      penalties_.apply(row_, history, params_);
    }
  }
  return std::span<const float>(row_);
}

void Sampler::run(SamplerStage stage, std::span<const int32_t> history, uint64_t position) {
  const auto min_keep = static_cast<size_t>(params_.min_keep);
  switch (stage) {
    case SamplerStage::kPenalties: penalties_.apply(candidates_, history, params_); break;
    case SamplerStage::kDry: dry_.apply(candidates_, history, params_); break;
    case SamplerStage::kTopNSigma: keep_top_n_sigma(candidates_, params_.top_n_sigma); break;
    case SamplerStage::kTopK: candidates_.keep_head(static_cast<size_t>(params_.top_k)); break;
    case SamplerStage::kTypicalP: keep_typical(candidates_, params_.typical_p, min_keep); break;
    case SamplerStage::kTopP: keep_top_p(candidates_, params_.top_p, min_keep); break;
    case SamplerStage::kMinP: keep_min_p(candidates_, params_.min_p, min_keep); break;
    case SamplerStage::kXtc:
      if (uniform_at(params_.seed, position, kXtcStream) < static_cast<double>(params_.xtc_probability))
        drop_top_choices(candidates_, params_.xtc_threshold, min_keep);
      break;
    case SamplerStage::kTemperature:
      if (params_.dynatemp_range > 0.0f) {
        apply_dynamic_temperature(candidates_, params_.temperature, params_.dynatemp_range, params_.dynatemp_exponent);
      } else {
        apply_temperature(candidates_, params_.temperature);
      }
      break;
    case SamplerStage::kAdaptiveP:
      candidates_.softmax();
      before_adaptive_.assign(candidates_.items().begin(), candidates_.items().end());
      apply_adaptive_p(candidates_, adaptive_aim(state_.adaptive, params_.adaptive_target));
      break;
  }
}

// Walks from the largest down until the probabilities reach the random number's share of their sum.
int32_t Sampler::draw(uint64_t position) {
  const double goal = candidates_.softmax() * uniform_at(params_.seed, position, kDrawStream);
  double sum = 0;
  size_t i = 0;
  int32_t last = -1;
  for (size_t n = 256;; n *= 16) {
    const auto head = candidates_.head(n);
    for (; i < head.size(); ++i) {
      if (head[i].p == 0.0f) continue;
      last = head[i].id;
      sum += static_cast<double>(head[i].p);
      if (goal < sum) return last;
    }
    if (head.size() == candidates_.size()) return last;  // rounding left the sum just below the goal
  }
}

Result<int32_t> Sampler::sample(std::span<const float> logits, std::span<const int32_t> history, uint64_t position,
                                TokenMask mask) {
  if (!mask.empty() && mask.size() < mask_words(logits.size())) {
    return make_error(ErrorCode::kInvalidArgument, "[sample] mask of {} words, expected {} for {} tokens", mask.size(),
                      mask_words(logits.size()), logits.size());
  }
  const auto row = MINFER_TRY(adjusted(logits, history));
  auto best = argmax(row, mask);
  if (!best.ok()) {
    // The model's own row may be sound.
    if ((!mask.empty() || row.data() != logits.data()) && argmax(logits).ok()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "[sample] position {}: the mask, the biases and the penalties leave no token that may be drawn",
                        position);
    }
    return best;
  }
  if (params_.temperature == 0.0f) {
    candidates_.assign_one(*best, row[static_cast<size_t>(*best)]);
    return best;
  }
  // Top-k in front, the usual case, never makes candidates of the whole row.
  const bool k_first = !stages_.empty() && stages_[0] == SamplerStage::kTopK;
  candidates_.assign(row, k_first ? static_cast<size_t>(params_.top_k) : 0, mask);
  for (size_t i = k_first ? 1 : 0; i < stages_.size(); ++i) run(stages_[i], history, position);
  if (params_.mirostat == 1) keep_mirostat1(candidates_, state_.mirostat_mu, logits.size());
  if (params_.mirostat == 2) keep_mirostat2(candidates_, state_.mirostat_mu);
  const int32_t id = draw(position);
  const auto p_of = [id](std::span<const Candidate> all) {
    return std::find_if(all.begin(), all.end(), [id](const Candidate& x) { return x.id == id; })->p;
  };
  if (params_.mirostat != 0) {
    state_.mirostat_mu =
        mirostat_next(state_.mirostat_mu, p_of(candidates_.items()), params_.mirostat_tau, params_.mirostat_eta);
  }
  if (!stages_.empty() && stages_.back() == SamplerStage::kAdaptiveP)
    state_.adaptive = adaptive_next(state_.adaptive, p_of(before_adaptive_), params_.adaptive_decay);
  return id;
}

std::vector<Candidate> Sampler::distribution(size_t n) const {
  const auto items = candidates_.items();
  std::vector<Candidate> out(items.begin(), items.end());
  const auto end = out.begin() + static_cast<std::ptrdiff_t>(std::min(n, out.size()));
  std::partial_sort(out.begin(), end, out.end(),
                    [](const Candidate& a, const Candidate& b) { return a.p != b.p ? a.p > b.p : a.id < b.id; });
  out.erase(end, out.end());
  return out;
}

float Sampler::logprob(int32_t id) const {
  for (const Candidate& x : candidates_.items()) {
    if (x.id == id) return static_cast<float>(log_f64(static_cast<double>(x.p)));
  }
  return -INFINITY;
}

}  // namespace minfer
