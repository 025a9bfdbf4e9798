// The response bodies of OpenAI's API, made of what the engine answered.
// Layout:  one JSON object without line ends, valid UTF-8. Log-probabilities of minus infinity, for which JSON has no
//          word, are -9999.0 as at OpenAI.
// Threads: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "chat/answer/format.h"
#include "server/openai/body.h"
#include "tokenizer/tokenizer.h"

namespace minfer::openai {

// One prompt of a body: what was submitted and what came back.
struct Answered {
  Request request;  // with the prompt as ids
  Response response;
  bool thinking_open = false;  // chats: the prompt ended inside a block of thinking
};

struct ReplyOptions {
  std::string id;             // without its prefix ("chatcmpl-", "cmpl-")
  int64_t created = 0;        // seconds since 1970
  std::string model;          // the name of the model that answered
  bool cached_tokens = true;  // usage.prompt_tokens_details
};

// `answered`: one for a chat, one per prompt for completions. Choice k of prompt i has the index i * n + k.
// `tokenizer` null: a model without a vocabulary, whose answers have no text.
nlohmann::ordered_json reply(const Body& body, const std::vector<Answered>& answered, const Tokenizer* tokenizer,
                             const chat::AnswerFormat& format, const ReplyOptions& options);
nlohmann::ordered_json embedding_reply(const Body& body, const Embeddings& embeddings, const ReplyOptions& options);

// "stop", "length"; what the answer's own end is called at OpenAI.
const char* finish_word(FinishReason reason);

// One line; what is not UTF-8 is replaced.
std::string line_of(const nlohmann::ordered_json& json);

}  // namespace minfer::openai
