// Body: a request body of OpenAI's API, checked and turned into what an Engine takes. Every field is followed or
// refused by name; nothing is ignored. Errors:  kInvalidArgument: the field, what was found, what was expected;
// kUnsupported: what minfer cannot do (yet). Threads: pure functions, plain values. Source:
// platform.openai.com/docs/api-reference: chat/create, completions/create, embeddings/create. docs/batch.md
//          lists the fields, with those that OpenAI's API does not have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "chat/message.h"
#include "minfer/request.h"

namespace minfer::openai {

enum class Endpoint : uint8_t { kChat, kCompletion, kEmbedding };
// "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
const char* endpoint_url(Endpoint endpoint);
std::optional<Endpoint> endpoint_from_url(std::string_view url);
// Which one a body is meant for, by what it asks: "messages", "prompt" or "input".
std::optional<Endpoint> endpoint_of_body(const chat::Value& body);

// What holds where a body is silent.
struct BodyDefaults {
  SamplingParams sampling;
  std::optional<int32_t>
      max_tokens;  // per choice. Absent: completions 16, as OpenAI's; chats as far as the context goes
};

inline constexpr int32_t kMaxTopLogprobs = 20;  // as OpenAI's
inline constexpr int32_t kMaxChoices = 128;     // likewise, and the engine's limit
inline constexpr size_t kMaxInputs = 2048;      // prompts or texts in one body, as OpenAI's
inline constexpr size_t kMaxDryBreakers = 64;   // each is a pass over the vocabulary

using Prompt = std::variant<std::string, std::vector<int32_t>>;

struct Body {
  Endpoint endpoint = Endpoint::kChat;
  std::string model;  // as the client named it; empty: not named

  // Chats and completions: everything but the prompt.
  Request request;
  // Texts that break a repetition for DRY, for the caller to turn into request.sampling.dry_breakers: only he knows the
  // vocabulary. Absent: the usual ones; an empty list: none.
  std::optional<std::vector<std::string>> dry_breakers;
  bool stream = false, include_usage = false;

  // Chats.
  std::vector<chat::Message> messages;
  chat::Value tools;  // definitions, or none
  std::vector<std::pair<std::string, chat::Value>> template_kwargs;
  bool add_generation_prompt = true, continue_final_message = false;
  bool parse_calls = true;  // false: tool_choice is "none"

  // Completions: the prompts. Embeddings: the inputs.
  std::vector<Prompt> prompts;
  bool echo = false;  // the answer's text begins with the prompt's

  // Embeddings.
  EmbedRequest embed;
  bool base64 = false;
};

Result<Body> parse_body(Endpoint endpoint, const chat::Value& body, const BodyDefaults& defaults);

}  // namespace minfer::openai
