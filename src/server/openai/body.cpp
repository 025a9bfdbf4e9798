// Field by field: what is common, then each endpoint.
#include "server/openai/body.h"

#include <cmath>

#include "chat/chat_template.h"
#include "sample/dry_breakers.h"
#include "server/openai/fields.h"
#include "server/openai/sampling_fields.h"

namespace minfer::openai {
namespace {

using chat::Value;

constexpr int32_t kMostTokens = 1 << 30;
constexpr int32_t kCompletionTokens = 16;  // OpenAI's default

Status refuse_value(const std::string& name, const Value& found, std::string_view why) {
  return make_error(ErrorCode::kUnsupported, "{}: found {}: {}", name, shown(found), why);
}

Status read_stop(Fields& f, Request& r) {
  const Value* v = f.take("stop");
  if (v == nullptr) return {};
  const auto bad = [&] { return bad_field(f.path("stop"), *v, "a string or a list of strings, none empty"); };
  const auto add = [&](const Value& item) {
    if (!item.is_string() || item.as_string().empty()) return false;
    r.stop.push_back(item.as_string());
    return true;
  };
  if (!v->is_sequence()) return add(*v) ? Status() : bad();
  for (const Value& item : v->items()) {
    if (!add(item)) return bad();
  }
  return {};
}

Result<std::vector<int32_t>> read_ids(const Value& list, const std::string& name) {
  std::vector<int32_t> ids;
  ids.reserve(list.items().size());
  for (const Value& item : list.items()) {
    const auto id = whole_number(item);
    if (!id || *id < 0 || *id > INT32_MAX) return bad_field(name, item, "the id of a token");
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

// A string, a list of strings, a list of ids, or a list of lists of ids.
Status read_prompts(Fields& f, const char* field, std::vector<Prompt>& prompts) {
  const std::string name = f.path(field);
  const Value* v = f.take(field);
  if (v == nullptr) return make_error(ErrorCode::kInvalidArgument, "{}: is missing", name);
  constexpr const char* kExpected = "a string, a list of strings, a list of ids or a list of lists of ids";
  if (v->is_string()) {
    prompts.emplace_back(v->as_string());
    return {};
  }
  if (!v->is_sequence() || v->items().empty()) return bad_field(name, *v, kExpected);
  const auto& items = v->items();
  if (whole_number(items[0])) {
    prompts.emplace_back(MINFER_TRY(read_ids(*v, name)));
    return {};
  }
  if (items.size() > kMaxInputs) {
    return make_error(ErrorCode::kInvalidArgument, "{}: found {} of them, expected at most {}", name, items.size(),
                      kMaxInputs);
  }
  for (const Value& item : items) {
    if (item.is_string() && items[0].is_string()) {
      prompts.emplace_back(item.as_string());
    } else if (item.is_sequence() && items[0].is_sequence()) {
      prompts.emplace_back(MINFER_TRY(read_ids(item, name)));
    } else {
      return bad_field(name, *v, kExpected);
    }
  }
  return {};
}

Status read_dry_breakers(Fields& f, Body& out) {
  const Value* v = f.take("dry_sequence_breakers");
  if (v == nullptr) return {};
  const std::string name = f.path("dry_sequence_breakers");
  if (!v->is_sequence() || v->items().size() > kMaxDryBreakers) {
    return bad_field(name, *v, fmt::format("a list of at most {} strings", kMaxDryBreakers));
  }
  auto& texts = out.dry_breakers.emplace();
  for (const Value& item : v->items()) {
    if (!item.is_string() || item.as_string().empty() || item.as_string().size() > kBreakerBytes) {
      return bad_field(name, item, fmt::format("a string of 1 to {} bytes", kBreakerBytes));
    }
    texts.push_back(item.as_string());
  }
  return {};
}

// Log-probabilities of what was drawn from, under the name that llama.cpp's server has for it.
Status read_logprobs_of(Fields& f, Request& r) {
  bool sampled = false;
  if (!MINFER_TRY(f.boolean("post_sampling_probs", sampled))) return {};
  if (sampled && !r.logprobs) {
    return make_error(ErrorCode::kInvalidArgument, "post_sampling_probs: found true, expected it with logprobs only");
  }
  r.logprobs_of = sampled ? LogprobsOf::kSampled : LogprobsOf::kModel;
  return {};
}

// What generating endpoints share.
Status read_generation(Fields& f, const BodyDefaults& defaults, Body& out) {
  Request& r = out.request;
  r.sampling = defaults.sampling;
  MINFER_TRY(read_sampling(f, r.sampling));
  if (const Value* penalty = f.take("repetition_penalty")) {  // another name for it, common elsewhere
    const auto n = number(*penalty);
    if (!n) return bad_field(f.path("repetition_penalty"), *penalty, "a number");
    if (f.take("repeat_penalty") != nullptr) {
      return make_error(ErrorCode::kInvalidArgument,
                        "repetition_penalty: it is repeat_penalty by another name; expected one of the two");
    }
    r.sampling.repeat_penalty = static_cast<float>(*n);
  }
  if (const Value* bias = f.take("logit_bias")) {
    r.sampling.logit_bias.clear();  // the body's stand in the place of the defaults'
    MINFER_TRY(read_logit_bias(*bias, f.path("logit_bias"), r.sampling));
  }
  MINFER_TRY(read_dry_breakers(f, out));
  MINFER_TRY(check_sampling(r.sampling));
  MINFER_TRY(f.integer("n", r.n, 1, kMaxChoices));
  MINFER_TRY(f.integer("min_tokens", r.min_tokens, 0, kMostTokens));
  MINFER_TRY(read_stop(f, r));
  if (const Value* ids = f.take("stop_token_ids")) {
    if (!ids->is_sequence()) return bad_field(f.path("stop_token_ids"), *ids, "a list of ids");
    r.stop_ids = MINFER_TRY(read_ids(*ids, f.path("stop_token_ids")));
  }
  MINFER_TRY(f.boolean("ignore_eos", r.ignore_eos));
  MINFER_TRY(f.text("user", r.client));
  MINFER_TRY(f.integer("priority", r.priority, -1000, 1000));

  MINFER_TRY(f.boolean("stream", out.stream));
  if (const Value* v = f.take("stream_options")) {
    Fields options = MINFER_TRY(Fields::of(*v, "stream_options."));
    MINFER_TRY(options.boolean("include_usage", out.include_usage));
    MINFER_TRY(options.finish());
    if (!out.stream) {
      return make_error(ErrorCode::kInvalidArgument, "stream_options: found {}, expected it with stream only",
                        shown(*v));
    }
  }
  MINFER_TRY(f.only("store", Value::boolean(false), "answers are not kept"));
  MINFER_TRY(f.only("service_tier", Value::string("auto"), "there are no tiers, expected \"auto\""));
  return {};
}

Status read_max_tokens(Fields& f, std::initializer_list<const char*> names, int32_t least, Request& r) {
  const char* found = nullptr;
  for (const char* name : names) {
    const int32_t before = r.max_tokens;
    if (!MINFER_TRY(f.integer(name, r.max_tokens, least, kMostTokens))) continue;
    if (found != nullptr && before != r.max_tokens) {
      return make_error(ErrorCode::kInvalidArgument, "{}: found {}, but {} is {}", name, r.max_tokens, found, before);
    }
    found = name;
  }
  return {};
}

Status read_tools(Fields& f, Body& out) {
  if (const Value* tools = f.take("tools")) {
    MINFER_TRY(chat::check_tools(*tools));
    if (!tools->items().empty()) out.tools = *tools;
  }
  if (const Value* choice = f.take("tool_choice")) {
    const bool none = choice->is_string() && choice->as_string() == "none";
    if (!none && !(choice->is_string() && choice->as_string() == "auto")) {
      return refuse_value(f.path("tool_choice"), *choice, "a call cannot be forced, expected \"auto\" or \"none\"");
    }
    if (none) {
      out.parse_calls = false;
      out.tools = Value::none();  // the model is not told of them
    }
  }
  return f.only("parallel_tool_calls", Value::boolean(true), "the number of calls cannot be limited");
}

Status read_response_format(Fields& f) {
  const Value* v = f.take("response_format");
  if (v == nullptr) return {};
  Fields format = MINFER_TRY(Fields::of(*v, "response_format."));
  std::string type;
  MINFER_TRY(format.text("type", type));
  if (type != "text") {
    return refuse_value(f.path("response_format"), *v,
                        "answers cannot be held to a format, expected {\"type\": \"text\"}");
  }
  return format.finish();
}

Status read_chat(Fields& f, const BodyDefaults& defaults, Body& out) {
  const Value* messages = f.take("messages");
  if (messages == nullptr) return make_error(ErrorCode::kInvalidArgument, "messages: is missing");
  if (!messages->is_sequence() || messages->items().empty()) {
    return bad_field(f.path("messages"), *messages, "a list of at least one message");
  }
  out.messages = MINFER_TRY(chat::messages_from_value(*messages));
  out.request.max_tokens = defaults.max_tokens.value_or(-1);
  MINFER_TRY(read_max_tokens(f, {"max_completion_tokens", "max_tokens"}, 1, out.request));
  MINFER_TRY(f.boolean("logprobs", out.request.logprobs));
  if (MINFER_TRY(f.integer("top_logprobs", out.request.top_logprobs, 0, kMaxTopLogprobs)) && !out.request.logprobs) {
    return make_error(ErrorCode::kInvalidArgument, "top_logprobs: found {}, expected it with logprobs only",
                      out.request.top_logprobs);
  }
  MINFER_TRY(read_logprobs_of(f, out.request));
  MINFER_TRY(read_tools(f, out));
  MINFER_TRY(read_response_format(f));
  MINFER_TRY(f.boolean("add_generation_prompt", out.add_generation_prompt));
  MINFER_TRY(f.boolean("continue_final_message", out.continue_final_message));
  if (out.continue_final_message) out.add_generation_prompt = false;  // it is the message that is gone on with
  if (const Value* kwargs = f.take("chat_template_kwargs")) {
    Fields named = MINFER_TRY(Fields::of(*kwargs, "chat_template_kwargs."));
    for (const auto& [key, value] : kwargs->as_dict().entries()) {
      const std::string& name = key.as_string();
      if (chat::is_conversation_variable(name)) {
        return make_error(ErrorCode::kInvalidArgument, "{}: it comes from the conversation and the model",
                          named.path(name));
      }
      out.template_kwargs.emplace_back(name, value);
    }
  }
  for (const char* field : {"modalities", "audio", "prediction", "reasoning_effort", "verbosity", "web_search_options",
                            "functions", "function_call", "metadata", "safety_identifier", "prompt_cache_key"}) {
    const Value* v = f.take(field);
    if (v != nullptr) return refuse_value(f.path(field), *v, "not supported");
  }
  return {};
}

Status read_completion(Fields& f, const BodyDefaults& defaults, Body& out) {
  MINFER_TRY(read_prompts(f, "prompt", out.prompts));
  Request& r = out.request;
  MINFER_TRY(f.boolean("echo", out.echo));
  r.max_tokens = defaults.max_tokens.value_or(kCompletionTokens);
  MINFER_TRY(read_max_tokens(f, {"max_tokens"}, 0, r));
  if (const Value* v = f.take("logprobs")) {
    const auto n = whole_number(*v);
    if (!n || *n < 0 || *n > kMaxTopLogprobs) {
      return bad_field(f.path("logprobs"), *v, fmt::format("a whole number from 0 to {}", kMaxTopLogprobs));
    }
    r.logprobs = true;
    r.top_logprobs = static_cast<int32_t>(*n);
    r.prompt_logprobs = out.echo;
  }
  MINFER_TRY(read_logprobs_of(f, r));
  if (MINFER_TRY(f.integer("best_of", r.best_of, 1, kMaxChoices)) && r.best_of < r.n) {
    return make_error(ErrorCode::kInvalidArgument, "best_of: found {}, expected at least n ({})", r.best_of, r.n);
  }
  if (out.stream && r.best_of > r.n) {
    return make_error(ErrorCode::kInvalidArgument,
                      "best_of: found {}, expected n ({}) with stream: which answers are the best shows at their end",
                      r.best_of, r.n);
  }
  const Value* suffix = f.take("suffix");
  if (suffix != nullptr) return refuse_value(f.path("suffix"), *suffix, "text cannot be filled in, only continued");
  MINFER_TRY(f.boolean("parse_special", r.parse_special));
  return {};
}

Status read_embedding(Fields& f, Body& out) {
  MINFER_TRY(read_prompts(f, "input", out.prompts));
  std::string format = "float", pooling;
  MINFER_TRY(f.text("encoding_format", format));
  if (format != "float" && format != "base64") {
    return bad_field(f.path("encoding_format"), Value::string(format), "\"float\" or \"base64\"");
  }
  out.base64 = format == "base64";
  if (MINFER_TRY(f.text("pooling", pooling))) {
    if (pooling == "mean") {
      out.embed.pooling = Pooling::kMean;
    } else if (pooling == "last") {
      out.embed.pooling = Pooling::kLast;
    } else if (pooling == "cls") {
      out.embed.pooling = Pooling::kCls;
    } else {
      return bad_field(f.path("pooling"), Value::string(pooling), "\"mean\", \"last\" or \"cls\"");
    }
  }
  MINFER_TRY(f.boolean("normalize", out.embed.normalize));
  MINFER_TRY(f.text("user", out.embed.client));
  const Value* dimensions = f.take("dimensions");
  if (dimensions != nullptr) {
    return refuse_value(f.path("dimensions"), *dimensions, "embeddings are not shortened");
  }
  return {};
}

}  // namespace

const char* endpoint_url(Endpoint endpoint) {
  switch (endpoint) {
    case Endpoint::kChat: return "/v1/chat/completions";
    case Endpoint::kCompletion: return "/v1/completions";
    case Endpoint::kEmbedding: return "/v1/embeddings";
  }
  return "";
}

std::optional<Endpoint> endpoint_from_url(std::string_view url) {
  for (const Endpoint e : {Endpoint::kChat, Endpoint::kCompletion, Endpoint::kEmbedding}) {
    if (url == endpoint_url(e)) return e;
  }
  return std::nullopt;
}

std::optional<Endpoint> endpoint_of_body(const Value& body) {
  if (body.find("messages") != nullptr) return Endpoint::kChat;
  if (body.find("prompt") != nullptr) return Endpoint::kCompletion;
  if (body.find("input") != nullptr) return Endpoint::kEmbedding;
  return std::nullopt;
}

Result<Body> parse_body(Endpoint endpoint, const Value& body, const BodyDefaults& defaults) {
  Fields f = MINFER_TRY(Fields::of(body, ""));
  Body out;
  out.endpoint = endpoint;
  MINFER_TRY(f.text("model", out.model));
  if (endpoint == Endpoint::kEmbedding) {
    MINFER_TRY(read_embedding(f, out));
  } else {
    MINFER_TRY(read_generation(f, defaults, out));
    MINFER_TRY(endpoint == Endpoint::kChat ? read_chat(f, defaults, out) : read_completion(f, defaults, out));
  }
  MINFER_TRY(f.finish());
  return out;
}

}  // namespace minfer::openai
