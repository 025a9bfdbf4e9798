// The fields of SamplingParams by name: how request bodies set them and how stamps write them down and read them back.
// Errors:  a wrong type; what check_sampling() says of the whole is left to the caller.
// Threads: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "minfer/sampling.h"
#include "server/openai/fields.h"

namespace minfer::openai {

// Numbers, the order of the samplers ("samplers": ["penalties", "top_k", ...]) and the seed. `params` keeps what is
// absent. Not logit_bias, whose form differs.
Status read_sampling(Fields& fields, SamplingParams& params);

// {"50256": -100}; values in [-100, 100] as OpenAI has it, or false: the id is never drawn.
Status read_logit_bias(const chat::Value& object, const std::string& name, SamplingParams& params);

// All of it, exactly: read_stamped_sampling() gives equal params. Reals are their shortest decimal form.
nlohmann::ordered_json stamped_sampling(const SamplingParams& params);
Status read_stamped_sampling(Fields& fields, SamplingParams& params);

// The shortest decimal number that is this f32.
double shortest(float value);

}  // namespace minfer::openai
