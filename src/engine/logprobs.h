// Log-probabilities of a row of logits: the log of its softmax, in f64, summed in order of the ids.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "minfer/request.h"

namespace minfer {

// Of `id` and of the `top` likeliest ids, ties to the lower id. Requires: id is a valid index, no logit is NaN and the
// largest is finite.
TokenLogprobs logprobs_of(std::span<const float> logits, int32_t id, int32_t top);  // logits [n_vocab]

}  // namespace minfer
