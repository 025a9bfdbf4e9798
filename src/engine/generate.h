// generate(): prefill a prompt, then draw tokens until an end, a limit or a cancel, streaming whole characters.
// Threads: one thread at a time, like the session.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session.h"
#include "minfer/request.h"

namespace minfer {

struct GenerateOptions {
  int32_t max_tokens = -1;  // -1: until the end or the context is full
  SamplingParams sampling;
  bool ignore_eos = false;
  bool show_control = false;                                  // control tokens appear in the text
  std::function<void(std::string_view text)> on_text;         // whole characters as they come; may be empty
  std::function<bool(size_t done, size_t total)> on_prefill;  // after each prompt chunk
  const std::atomic<bool>* cancel = nullptr;                  // looked at between steps
};

struct GenerateStats {
  int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double time_to_first_token_ms = 0, prefill_ms = 0, decode_ms = 0;
  std::vector<double> forward_ms;  // one per decode step
  double prefill_tokens_per_second() const;
  double decode_tokens_per_second() const;
};

struct Generated {
  std::vector<int32_t> ids;  // an end token that stopped the answer is not in it
  std::string text;
  FinishReason finish = FinishReason::kStop;
  GenerateStats stats;
};

// `prompt` = all ids of the conversation so far; what the session already has of them is not computed again.
Result<Generated> generate(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options);

}  // namespace minfer
