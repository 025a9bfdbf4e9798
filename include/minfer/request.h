// Request, what is asked of an Engine, and what comes back: events as the answer grows, a response when it is done.
// The functions that a request carries must not throw: an exception that leaves one ends the program (std::terminate).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "minfer/error.h"
#include "minfer/sampling.h"

namespace minfer {

enum class FinishReason : uint8_t {
  kStop,       // an end token, a stop id or a stop string
  kLength,     // max_tokens
  kContext,    // the context is full
  kCancelled,  // the caller cancelled, or the engine was closed
  kDeadline,   // the time was up
};
const char* finish_reason_name(FinishReason reason);  // "stop", "length", "context", "cancelled", "deadline"

// Says which ids may be drawn next: bit id % 32 of allowed[id / 32], as grammar engines (xgrammar, llguidance) fill
// them. `allowed` [ceil(n_vocab / 32)] comes with all bits set; those past n_vocab mean nothing. `generated` = the
// answer so far. Called on threads of the engine, for one choice by one thread at a time. An error ends the request,
// and so does a mask that allows nothing.
using AllowedTokens =
    std::function<Status(int32_t choice, std::span<const int32_t> generated, std::span<uint32_t> allowed)>;

// Of which distribution log-probabilities are.
enum class LogprobsOf : uint8_t {
  kModel,    // the softmax of the model's logits, before any sampling stage
  kSampled,  // the one that was drawn from: after mask, biases, penalties, filters and temperature
};

struct Event;

struct Request {
  // The prompt: ids, or a text that is encoded (special tokens added where the vocabulary asks for them; with
  // parse_special, text that spells a control token becomes it). Exactly one of the two.
  std::vector<int32_t> prompt;
  std::optional<std::string> text;
  bool parse_special = false;

  SamplingParams sampling;
  int32_t n = 1;  // answers to the same prompt; choice i draws with seed + i, as a request of its own would
  // So many are drawn, and the n with the highest mean log-probability (kModel's) of the tokens drawn, an end token
  // included, come back, best first; of equal ones the one with the lower seed. 0: n. Where it is more than n, no event
  // comes before all have ended; then there is one for each that comes back.
  int32_t best_of = 0;
  int32_t max_tokens = -1;        // per choice; -1: until the end or the context is full
  int32_t min_tokens = 0;         // before so many, end tokens and stop ids are not drawn and stop strings do not count
  std::vector<std::string> stop;  // the text ends before the first of these
  std::vector<int32_t> stop_ids;  // as end tokens: they end the answer and are not part of it
  bool ignore_eos = false;
  bool show_control = false;  // control tokens appear in the text
  AllowedTokens mask;         // empty: none, at no cost

  bool logprobs = false;     // of the tokens drawn
  int32_t top_logprobs = 0;  // so many of the likeliest ids beside each, likeliest first; implies logprobs
  // With kSampled an id that could not be drawn is never among the likeliest, so there may be fewer.
  LogprobsOf logprobs_of = LogprobsOf::kModel;
  // Of the prompt's ids after the first, always kModel's; nothing is taken from the prefix cache.
  bool prompt_logprobs = false;

  int32_t priority = 0;    // larger ones run first and may push smaller ones out
  std::string client;      // equal priorities take turns by client, not by request
  double deadline_ms = 0;  // from submit(); what there is then is the answer. 0: none
  bool speculate = true;   // let the engine guess ahead where that is faster; the answer is the same

  // Called on the engine's thread after each step that computed a part of the prompt: `done` of its ids have their K
  // and V, those from the cache included. Must be quick; false cancels.
  std::function<bool(int64_t done, int64_t total)> on_prompt;
  // Instead of a stream: called on the engine's thread with each event; must be quick; false cancels. It may submit()
  // and cancel(). What waits for the engine (run(), wait(), check_idle(), ...) is an error there, and the engine must
  // not be destroyed by it.
  std::function<bool(const Event&)> on_event;
};

struct TokenLogprobs {
  float logprob = 0;                           // of the id itself
  std::vector<std::pair<int32_t, float>> top;  // at most top_logprobs of (id, logprob)
};

// What one step added to one choice. The texts of a choice's events joined are its text, likewise the ids; text may lag
// behind the ids (half a character, the beginning of a stop string).
struct Event {
  int32_t choice = 0;
  std::vector<int32_t> ids;
  std::string text;
  std::vector<TokenLogprobs> logprobs;  // one per id, where asked for
  std::optional<FinishReason> finish;   // the last event of its choice
};

struct Choice {
  std::vector<int32_t> ids;  // without the end token that stopped it
  std::string text;
  std::vector<TokenLogprobs> logprobs;
  FinishReason finish = FinishReason::kStop;
  std::string stop;  // the stop string that ended it, if one did
};

struct Timings {
  double queued_ms = 0;       // from submit() to the first step
  double first_token_ms = 0;  // from submit()
  double total_ms = 0;        // from submit() to the end
};

struct Response {
  std::vector<Choice> choices;
  std::vector<TokenLogprobs> prompt_logprobs;  // of the prompt's ids from the second on
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;     // of them, whose K and V were in the cache when the first choice began
  int64_t generated_tokens = 0;  // all choices, with those that best_of leaves out
  int64_t draft_tokens = 0, draft_tokens_accepted = 0;
  int32_t preemptions = 0;
  Timings timings;
};

// --- embeddings
// --------------------------------------------------------------------------------------------------------- Of the
// model's last hidden states, after its last norm, what becomes the embedding of a text.
enum class Pooling : uint8_t {
  kMean,  // their mean
  kLast,  // that of the last token
  kCls,   // that of the first token
  kNone,  // all of them, one after the other
};

struct EmbedRequest {
  std::vector<std::vector<int32_t>> prompts;  // ids, or
  std::vector<std::string> texts;             // encoded as Request::text; exactly one of the two
  Pooling pooling = Pooling::kMean;
  bool normalize = true;  // each to length 1; one of zeros stays as it is
  int32_t priority = 0;
  std::string client;
  double deadline_ms = 0;  // past it the request fails; 0: none

  // Called on the engine's thread when all is done or has failed; must be quick. wait() does not wait any more then.
  std::function<void()> on_done;
};

struct Embeddings {
  std::vector<std::vector<float>> rows;  // one per input: [n_embd], with kNone [tokens, n_embd]
  int32_t n_embd = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0;
  Timings timings;
};

}  // namespace minfer
