// SamplingParams: how the next token is drawn from the logits. docs/sampling.md defines each stage.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "minfer/error.h"

namespace minfer {

// The stages that can be put in order. Mask and logit bias come before all of them, the draw after.
enum class SamplerStage : uint8_t {
  kPenalties,  // repeat, frequency, presence
  kDry,
  kTopNSigma,
  kTopK,
  kTypicalP,
  kTopP,
  kMinP,
  kXtc,
  kTemperature,
  kAdaptiveP,
};
inline constexpr int kSamplerStages = 10;
std::vector<SamplerStage> default_samplers();  // in the order above
const char* sampler_name(SamplerStage stage);  // "penalties", "dry", "top_n_sigma", "top_k", "typ_p", ...

// "penalties;top_k;temperature". "" is the empty list. Errors: an unknown name, with those that exist.
Result<std::vector<SamplerStage>> parse_samplers(std::string_view names);

// Each stage is off at the value that its comment names; what is out of range is refused by check_sampling().
struct SamplingParams {
  std::vector<std::pair<int32_t, float>> logit_bias;  // added to the logits of these ids; -infinity forbids one

  float repeat_penalty =
      1.0f;  // [0.01, 100]; ids seen lately: positive logits are divided by it, others multiplied; 1 = off
  int32_t repeat_last_n = 64;      // how many of the last ids count for the three penalties; 0 = none, -1 = all
  float frequency_penalty = 0.0f;  // [-100, 100], subtracted per occurrence; 0 = off
  float presence_penalty = 0.0f;   // [-100, 100], subtracted once if the id occurred; 0 = off

  // DRY: an id that would lengthen a repetition of n >= dry_allowed_length ids loses
  // dry_multiplier * dry_base^(n - dry_allowed_length).
  float dry_multiplier = 0.0f;      // [0, 100]; 0 = off
  float dry_base = 1.75f;           // [1, 100]
  int32_t dry_allowed_length = 2;   // >= 0
  int32_t dry_penalty_last_n = 64;  // how many of the last ids are looked at; 0 = none, -1 = all
  // A repetition never reaches back across one of these sequences of 1 to 64 ids: dry_breakers() makes them of strings.
  std::vector<std::vector<int32_t>> dry_breakers;

  float top_n_sigma = -1.0f;  // keep logits >= max - n * standard deviation, [-1, 1000]; 0 or less = off
  int32_t top_k = 40;         // keep the k largest; 0 = all
  float typical_p = 1.0f;     // locally typical sampling, (0, 1]; 1 = off
  float top_p = 0.95f;        // nucleus, (0, 1]; 1 = off
  float min_p = 0.05f;        // keep p >= min_p * max p, [0, 1]; 0 = off
  // XTC: with this probability all ids of at least the threshold are dropped, but for the least likely of them.
  float xtc_probability = 0.0f;  // [0, 1]; 0 = off
  float xtc_threshold = 0.1f;    // [0, 1]; above 0.5 no two ids reach it: off
  int32_t min_keep = 0;          // typical_p, top_p, min_p and xtc leave at least so many

  float temperature = 0.8f;  // [0, 100]; 0 = greedy: the largest logit after bias and penalties, ties to the lower id
  // Dynamic temperature: between max(0, temperature - range) and temperature + range by the entropy.
  float dynatemp_range = 0.0f;     // [0, 100]; 0 = off
  float dynatemp_exponent = 1.0f;  // [0, 100]

  float adaptive_target = -1.0f;  // prefer ids near this probability, [-1, 1]; negative = off
  float adaptive_decay = 0.9f;    // of the average it is steered by, [0, 0.99]

  // Mirostat holds the surprise of the drawn ids near mirostat_tau bits. It takes the place of the stages from
  // top_n_sigma to xtc.
  int32_t mirostat = 0;       // 0 = off, 1 or 2: the version
  float mirostat_tau = 5.0f;  // (0, 100]
  float mirostat_eta = 0.1f;  // how fast it corrects, [0, 1]

  // The order; a stage that is not listed does not happen (temperature 0 is greedy all the same). Each at most once,
  // adaptive_p last.
  std::vector<SamplerStage> samplers = default_samplers();
  uint64_t seed = 0;
};

// Errors: a value outside its range, naming the field, what was found and what was expected; settings that exclude each
// other.
Status check_sampling(const SamplingParams& params);

}  // namespace minfer
