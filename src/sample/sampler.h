// Sampler: draws one token id from a row of logits.
// Every stage works on candidates sorted by (logit descending, id ascending), so ties never depend on the machine.
// Errors:  logits that are NaN, or of which the largest is infinite: the model's output means nothing then.
// Threads: one thread at a time per Sampler; sample() reuses its buffers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "minfer/sampling.h"

namespace minfer {

struct Candidate {
  int32_t id;
  float logit;
  float p;  // filled by the stages that need it
};

class Sampler {
 public:
  // Requires: check_sampling(params).ok()
  explicit Sampler(SamplingParams params) : params_(std::move(params)) {}

  // `logits` [n_vocab]; `history` = ids before this position (prompt included), for the penalties; `position` = index
  // of the token to draw, keys the random number.
  Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> history, uint64_t position);

  const SamplingParams& params() const { return params_; }

 private:
  SamplingParams params_;
  std::vector<float> adjusted_;
  std::vector<Candidate> candidates_;
};

// The largest logit, ties to the lower id. Errors as above.
Result<int32_t> argmax(std::span<const float> logits);

// --- stages, each on sorted candidates; exposed for tests ---------------------------------------------------------
void apply_penalties(std::span<float> logits, std::span<const int32_t> history, const SamplingParams& params);
void softmax(std::vector<Candidate>& c);                        // fills p; sums in order
void keep_typical(std::vector<Candidate>& c, float p);          // Source: Meister et al. 2022
void keep_top_p(std::vector<Candidate>& c, float p);            // Source: Holtzman et al. 2019
void keep_min_p(std::vector<Candidate>& c, float p);            // Source: Nguyen et al. 2024
int32_t draw(const std::vector<Candidate>& c, double uniform);  // Requires: softmax done, c not empty

}  // namespace minfer
