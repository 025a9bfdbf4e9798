// Sampler: draws one token id from a row of logits: mask, bias, the stages in their order, the draw.
// Every stage is defined so that ties and sums never depend on the machine (docs/sampling.md).
// Errors:  logits that are NaN, or of which the largest is infinite: the model's output means nothing then. A mask and
//          biases that leave no id.
// Threads: one thread at a time per Sampler; sample() reuses its buffers.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/error.h"
#include "minfer/sampling.h"
#include "sample/adaptive_p.h"
#include "sample/candidates.h"
#include "sample/dry.h"
#include "sample/penalties.h"

namespace minfer {

// What the stages remember from one draw to the next: mirostat's mu and the average of adaptive-p. It is a function of
// the parameters and of the (logits, id) of each draw since the start, nothing else.
struct SamplerState {
  double mirostat_mu = 0;
  AdaptiveAverage adaptive;
  bool operator==(const SamplerState&) const = default;
};

class Sampler {
 public:
  // Requires: check_sampling(params).ok()
  explicit Sampler(SamplingParams params);

  // `logits` [n_vocab]; `history` = ids before this position (prompt included), for the penalties; `position` = index
  // of the token to draw, keys the random numbers. The draw counts: the state moves on. Ids that the mask forbids are
  // never looked at, so it costs a pass less than the row, and no copy.
  Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> history, uint64_t position,
                         TokenMask mask = {});

  // A draw that is taken back (a guess that was wrong) or goes on elsewhere (a session that was saved):
  // restore(state()) as it was before. A row whose draw was never made needs neither.
  const SamplerState& state() const { return state_; }
  void restore(const SamplerState& state) { state_ = state; }

  // After sample(): the n likeliest of the ids that could be drawn, with the probabilities p they had, which sum to 1
  // over all; likeliest first, ties to the lower id. `logit` is what the stages made of it.
  std::vector<Candidate> distribution(size_t n = std::numeric_limits<size_t>::max()) const;
  // After sample(): the logarithm of the id's p there; -infinity if a stage had dropped it.
  float logprob(int32_t id) const;

  const SamplingParams& params() const { return params_; }

 private:
  Result<std::span<const float>> adjusted(std::span<const float> logits, std::span<const int32_t> history);
  void run(SamplerStage stage, std::span<const int32_t> history, uint64_t position);
  int32_t draw(uint64_t position);

  SamplingParams params_;
  std::vector<SamplerStage> first_;   // stages that change the row before anything is dropped
  std::vector<SamplerStage> stages_;  // the others that do something, in order
  Penalties penalties_;
  Dry dry_;
  SamplerState state_;
  std::vector<float> row_;
  Candidates candidates_;
  std::vector<Candidate> before_adaptive_;
};

// The largest logit that the mask allows, ties to the lower id. Errors as above.
Result<int32_t> argmax(std::span<const float> logits, TokenMask mask = {});

}  // namespace minfer
