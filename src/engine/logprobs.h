// Log-probabilities of a row of logits: the log of its softmax, in f64, summed in order of the ids. And those of what a
// sampler has drawn from.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "minfer/request.h"
#include "sample/sampler.h"

namespace minfer {

// Of `id` and of the `top` likeliest ids, ties to the lower id. Requires: id is a valid index, no logit is NaN and the
// largest is finite.
TokenLogprobs logprobs_of(std::span<const float> logits, int32_t id, int32_t top);  // logits [n_vocab]

// The first of the two alone.
float logprob_of(std::span<const float> logits, int32_t id);

// After a draw of `id`: of it and of the `top` likeliest that could be drawn.
TokenLogprobs sampled_logprobs(const Sampler& sampler, int32_t id, int32_t top);

}  // namespace minfer
