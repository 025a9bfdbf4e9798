// Stamp: what an answer carries so that it can be made again, bit for bit: which model, which numerics, every
// parameter, the prompt's ids and the answer's. Layout:  {"model_sha256", "numerics", "cache_type_k", "cache_type_v",
// "parameters": {"n", "max_tokens", ..., "seed",
//          every sampling field}, "prompt_sha256", "output_sha256", "finish": [...], "prompt_ids", "token_ids"}.
//          prompt_sha256 is of the ids as little-endian int32; output_sha256 of, for each choice, the number of ids
//          (int32) and the ids, the number of bytes of its text (int64) and the text.
// Errors:  read_stamp(): the field that is missing or wrong; hashes that are not those of the ids.
// Threads: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chat/value.h"
#include "minfer/request.h"

namespace minfer {

// What decides the bits beside the request.
struct StampedModel {
  std::string sha256;  // of the model's file, or of its parts one after the other
  std::string cache_type_k, cache_type_v;
  int32_t n_ctx = 0;  // positions of the context; not written as such, see make_stamp()
};

struct Stamp {
  StampedModel model;
  int32_t numerics = 0;
  Request request;                              // as it was submitted: the prompt as ids
  std::vector<std::vector<int32_t>> token_ids;  // per choice
  std::vector<FinishReason> finish;
  std::string output_sha256;
};

std::string prompt_sha256(std::span<const int32_t> ids);
std::string output_sha256(const std::vector<Choice>& choices);

// `request` as it was submitted, with the prompt as ids and without a mask. Where the context alone limits answers of
// which only the best came back (best_of), its limit is written as max_tokens: of those left out nothing else tells
// where they ended. Requires: n_ctx is known then.
nlohmann::ordered_json make_stamp(const StampedModel& model, const Request& request,
                                  const std::vector<Choice>& choices);
Result<Stamp> read_stamp(const chat::Value& object);

// The request that makes the answer again: answers that the context cut end at the same length whatever the context.
Request replay_request(const Stamp& stamp);

// The first place where an answer is not the recorded one.
struct Difference {
  int32_t choice = 0;
  int64_t token = -1;                      // its index; -1: the ids are equal, the texts are not
  std::optional<int32_t> recorded, again;  // the ids there; absent: that answer ended before
};
std::optional<Difference> first_difference(const Stamp& stamp, const std::vector<Choice>& again);

}  // namespace minfer
