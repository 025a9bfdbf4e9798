// Choices, log-probabilities, usage.
#include "server/openai/reply.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "server/openai/answer_reader.h"
#include "server/openai/sampling_fields.h"
#include "tokenizer/stream_decode.h"

namespace minfer::openai {
namespace {

using Json = nlohmann::ordered_json;

double logprob_number(float x) { return std::isfinite(x) ? shortest(x) : -9999.0; }

std::string piece_of(const Tokenizer* tokenizer, int32_t id) {
  return tokenizer != nullptr && tokenizer->valid(id) ? std::string(tokenizer->piece(id)) : std::string();
}

Json token_entry(const Tokenizer* tokenizer, int32_t id, float logprob) {
  const std::string piece = piece_of(tokenizer, id);
  auto bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<uint8_t>(c));
  Json j;
  j["token"] = utf8_replace(piece);
  j["logprob"] = logprob_number(logprob);
  j["bytes"] = std::move(bytes);
  return j;
}

Json chat_logprobs(const Tokenizer* tokenizer, const Choice& choice) {
  auto content = Json::array();
  for (size_t i = 0; i < choice.logprobs.size(); ++i) {
    Json entry = token_entry(tokenizer, choice.ids[i], choice.logprobs[i].logprob);
    auto top = Json::array();
    for (const auto& [id, logprob] : choice.logprobs[i].top) top.push_back(token_entry(tokenizer, id, logprob));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  Json j;
  j["content"] = std::move(content);
  return j;
}

int64_t characters(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
}

// The lists of the older API, a token at a time.
class LogprobLists {
 public:
  explicit LogprobLists(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {
    if (tokenizer != nullptr) decoder_.emplace(*tokenizer);
  }

  void add(int32_t id, const TokenLogprobs* logprobs) {
    tokens_.push_back(utf8_replace(piece_of(tokenizer_, id)));
    offsets_.push_back(offset_);
    if (logprobs == nullptr) {  // the prompt's first id: nothing stands before it
      values_.push_back(nullptr);
      top_.push_back(nullptr);
    } else {
      values_.push_back(logprob_number(logprobs->logprob));
      Json top = Json::object();
      // Of ids with the same text the likeliest counts; the one drawn is always there, as at OpenAI.
      for (const auto& [top_id, p] : logprobs->top) {
        top.emplace(utf8_replace(piece_of(tokenizer_, top_id)), logprob_number(p));
      }
      if (!logprobs->top.empty()) top.emplace(tokens_.back(), logprob_number(logprobs->logprob));
      top_.push_back(std::move(top));
    }
    if (!decoder_ || !tokenizer_->valid(id)) return;
    if (const auto text = decoder_->push(id); text.ok()) offset_ += characters(*text);
  }

  Json take() {
    Json j;
    j["tokens"] = std::move(tokens_);
    j["token_logprobs"] = std::move(values_);
    j["top_logprobs"] = std::move(top_);
    j["text_offset"] = std::move(offsets_);
    return j;
  }

 private:
  const Tokenizer* tokenizer_;
  std::optional<StreamDecoder> decoder_;
  int64_t offset_ = 0;
  Json tokens_ = Json::array(), values_ = Json::array(), top_ = Json::array(), offsets_ = Json::array();
};

Json completion_choice(const Body& body, size_t prompt, const Answered& a, const Choice& choice,
                       const Tokenizer* tokenizer) {
  std::string text = choice.text;
  if (body.echo) {
    const Prompt& p = body.prompts[prompt];
    if (const auto* given = std::get_if<std::string>(&p)) {
      text = *given + text;
    } else if (tokenizer != nullptr) {
      const auto decoded = tokenizer->decode(a.request.prompt, {.show_control = true, .strip_space_prefix = true});
      if (decoded.ok()) text = utf8_replace(*decoded) + text;
    }
  }
  Json j;
  j["text"] = std::move(text);
  j["logprobs"] = nullptr;
  if (a.request.logprobs) {
    LogprobLists lists(tokenizer);
    if (body.echo) {
      for (size_t i = 0; i < a.request.prompt.size(); ++i) {
        lists.add(a.request.prompt[i], i == 0 ? nullptr : &a.response.prompt_logprobs[i - 1]);
      }
    }
    for (size_t i = 0; i < choice.logprobs.size(); ++i) lists.add(choice.ids[i], &choice.logprobs[i]);
    j["logprobs"] = lists.take();
  }
  j["finish_reason"] = finish_word(choice.finish);
  return j;
}

Json chat_choice(const Body& body, const Answered& a, const Choice& choice, size_t index, const Tokenizer* tokenizer,
                 const chat::AnswerFormat& format, const std::string& id) {
  chat::ParsedAnswer parsed;
  if (tokenizer == nullptr) {
    parsed.content = choice.text;
  } else {
    chat::AnswerOptions options;
    options.thinking_open = a.thinking_open;
    options.parse_calls = body.parse_calls;
    options.stream_arguments = false;
    options.tools = body.tools;
    AnswerReader reader(*tokenizer, format, std::move(options));
    parsed.add(reader.push({0, choice.ids, choice.text, {}, choice.finish}));
  }
  Json message;
  message["role"] = "assistant";
  message["content"] = parsed.content;
  if (parsed.content.empty() && !parsed.calls.empty()) message["content"] = nullptr;
  if (!parsed.reasoning.empty()) message["reasoning_content"] = parsed.reasoning;
  if (!parsed.calls.empty()) {
    auto calls = Json::array();
    for (size_t i = 0; i < parsed.calls.size(); ++i) {
      const chat::ParsedCall& c = parsed.calls[i];
      constexpr size_t kIdDigits = 24;
      Json call;
      call["id"] =
          !c.id.empty() ? c.id : "call_" + sha256_hex(fmt::format("{}/{}/{}", id, index, i)).substr(0, kIdDigits);
      call["type"] = "function";
      call["function"] = {{"name", c.name}, {"arguments", c.arguments}};
      calls.push_back(std::move(call));
    }
    message["tool_calls"] = std::move(calls);
  }
  Json j;
  j["message"] = std::move(message);
  j["logprobs"] = nullptr;
  if (a.request.logprobs) j["logprobs"] = chat_logprobs(tokenizer, choice);
  const bool calls = choice.finish == FinishReason::kStop && !parsed.calls.empty();
  j["finish_reason"] = calls ? "tool_calls" : finish_word(choice.finish);
  return j;
}

std::string base64(std::span<const float> row) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  for (const float x : row) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(bits >> (8 * i) & 0xff);  // little-endian
  }
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < n ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

const char* finish_word(FinishReason reason) { return reason == FinishReason::kStop ? "stop" : "length"; }

Json reply(const Body& body, const std::vector<Answered>& answered, const Tokenizer* tokenizer,
           const chat::AnswerFormat& format, const ReplyOptions& options) {
  const bool chat = body.endpoint == Endpoint::kChat;
  Json j;
  j["id"] = (chat ? "chatcmpl-" : "cmpl-") + options.id;
  j["object"] = chat ? "chat.completion" : "text_completion";
  j["created"] = options.created;
  j["model"] = options.model;
  auto choices = Json::array();
  int64_t prompt_tokens = 0, generated = 0, cached = 0;
  for (size_t i = 0; i < answered.size(); ++i) {
    const Answered& a = answered[i];
    for (const Choice& c : a.response.choices) {
      Json choice;
      choice["index"] = choices.size();
      choice.update(chat ? chat_choice(body, a, c, choices.size(), tokenizer, format, options.id)
                         : completion_choice(body, i, a, c, tokenizer));
      choices.push_back(std::move(choice));
    }
    prompt_tokens += a.response.prompt_tokens;
    generated += a.response.generated_tokens;
    cached += a.response.cached_tokens;
  }
  j["choices"] = std::move(choices);
  Json usage;
  usage["prompt_tokens"] = prompt_tokens;
  usage["completion_tokens"] = generated;
  usage["total_tokens"] = prompt_tokens + generated;
  if (options.cached_tokens) usage["prompt_tokens_details"] = {{"cached_tokens", cached}};
  j["usage"] = std::move(usage);
  return j;
}

Json embedding_reply(const Body& body, const Embeddings& embeddings, const ReplyOptions& options) {
  Json j;
  j["object"] = "list";
  auto data = Json::array();
  for (const auto& row : embeddings.rows) {
    Json entry;
    entry["object"] = "embedding";
    entry["index"] = data.size();
    if (body.base64) {
      entry["embedding"] = base64(row);
    } else {
      auto values = Json::array();
      for (const float x : row) values.push_back(shortest(x));
      entry["embedding"] = std::move(values);
    }
    data.push_back(std::move(entry));
  }
  j["data"] = std::move(data);
  j["model"] = options.model;
  j["usage"] = {{"prompt_tokens", embeddings.prompt_tokens}, {"total_tokens", embeddings.prompt_tokens}};
  return j;
}

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace minfer::openai
