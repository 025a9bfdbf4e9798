// SamplingParams: how the next token is drawn from the logits. The stages run in the order of the fields.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "minfer/error.h"

namespace minfer {

struct SamplingParams {
  std::vector<std::pair<int32_t, float>> logit_bias;  // added to the logits of these ids; -infinity forbids one
  float repeat_penalty =
      1.0f;  // [0.01, 100]; ids seen lately: positive logits are divided by it, negative ones multiplied
  int32_t repeat_last_n = 64;      // how many of the last ids count for the three penalties; 0 = none, -1 = all
  float frequency_penalty = 0.0f;  // subtracted per occurrence
  float presence_penalty = 0.0f;   // subtracted once if the id occurred
  int32_t top_k = 40;              // keep the k largest; 0 = all
  float typical_p = 1.0f;          // locally typical sampling, (0, 1]; 1 = off
  float top_p = 0.95f;             // nucleus, (0, 1]; 1 = off
  float min_p = 0.05f;             // keep p >= min_p * max p, [0, 1]; 0 = off
  float temperature = 0.8f;        // 0 = greedy: the largest logit, ties to the lower id; the filters are skipped
  uint64_t seed = 0;
};

// Errors: a value outside its range, naming the field, what was found and what was expected.
Status check_sampling(const SamplingParams& params);

}  // namespace minfer
