// The record's fields one by one; a chat's message by making it again from the answer's text. The request's tools are
// not in the record: those that its calls name stand in for them.
#include "shown_answer.h"

#include <nlohmann/json.hpp>

#include "chat/json.h"
#include "server/openai/reply.h"
#include "tokenizer/stream_decode.h"

namespace minfer::cli {
namespace {

using chat::Value;
using Json = nlohmann::json;
using Words = std::optional<std::string>;

// As it is after it was written: what is not UTF-8 replaced.
template <typename T>
Json as_written(const T& j) {
  return Json::parse(j.dump(-1, ' ', false, Json::error_handler_t::replace), nullptr, false);
}

std::string in_short(const Json& j) {
  constexpr size_t kMost = 60;
  const std::string text = j.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kMost ? text : utf8_replace(text.substr(0, kMost)) + "...";
}

Words compare_field(const Json& shown, const std::string& name, const Json& computed) {
  if (shown == computed) return std::nullopt;
  return fmt::format("{} is {}, computed {}", name, in_short(shown), in_short(computed));
}

Words compare_present(const Json& record, const char* key, const Json& computed) {
  const auto at = record.find(key);
  return at == record.end() ? std::nullopt : compare_field(*at, key, computed);
}

// What `run --json --stamp` printed.
Words run_difference(const Json& record, const Stamp& stamp, const Response& again) {
  const Choice& c = again.choices[0];
  const std::pair<const char*, Json> fields[] = {
      {"text", as_written(Json(c.text))},           {"token_ids", c.ids},
      {"prompt_ids", stamp.request.prompt},         {"finish_reason", finish_reason_name(c.finish)},
      {"seed", stamp.request.sampling.seed},        {"prompt_tokens", again.prompt_tokens},
      {"generated_tokens", again.generated_tokens},
  };
  for (const auto& [key, computed] : fields) {
    if (auto words = compare_present(record, key, computed)) return words;
  }
  return std::nullopt;
}

const char* json_type(const Json& j) {
  if (j.is_string()) return "string";
  if (j.is_boolean()) return "boolean";
  if (j.is_number_integer()) return "integer";
  if (j.is_number()) return "number";
  if (j.is_array()) return "array";
  return j.is_object() ? "object" : "null";
}

// Definitions of the tools that the calls of a message name, with the types of their arguments.
Value tools_of(const Json& message) {
  Json tools = Json::array();
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return {};
  for (const Json& call : *calls) {
    const Json function = call.is_object() ? call.value("function", Json()) : Json();
    if (!function.is_object() || !function.contains("name")) continue;
    const Json text = function.value("arguments", Json());
    const Json arguments =
        text.is_string() ? Json::parse(text.get_ref<const std::string&>(), nullptr, false) : Json::object();
    Json properties = Json::object();
    if (arguments.is_object()) {
      for (const auto& [name, value] : arguments.items()) properties[name] = {{"type", json_type(value)}};
    }
    tools.push_back(
        {{"type", "function"},
         {"function",
          {{"name", function["name"]}, {"parameters", {{"type", "object"}, {"properties", std::move(properties)}}}}}});
  }
  auto value = chat::parse_json(tools.dump(-1, ' ', false, Json::error_handler_t::replace));
  return value.ok() ? std::move(value).value() : Value();
}

struct Context {
  const Stamp& stamp;
  const Response& again;
  const Tokenizer* tokenizer;
  const chat::AnswerFormat& format;
  std::string id;  // of the reply: ids of calls are made of it
};

// A message is that of the answer if one way of reading the answer gives it: with reasoning begun by the prompt or not,
// with calls looked for or not.
Words message_difference(const Json& message, const Json& finish, size_t index, const Context& c) {
  const Value named = tools_of(message);
  Json plain;
  for (const bool thinking : {false, true}) {
    for (int calls = 0; calls < 3; ++calls) {
      openai::Body body;
      body.endpoint = openai::Endpoint::kChat;
      body.parse_calls = calls > 0;
      if (calls == 2) body.tools = named;
      openai::Answered a;
      a.request = c.stamp.request;
      a.response.choices = c.again.choices;
      a.thinking_open = thinking;
      openai::ReplyOptions options;
      options.id = c.id;
      const auto reply = openai::reply(body, {a}, c.tokenizer, c.format, options);
      const Json made = as_written(reply["choices"][index]);
      if (message == made["message"] && (finish.is_discarded() || finish == made["finish_reason"])) {
        return std::nullopt;
      }
      // Told of is what comes nearest.
      if (plain.is_null() || message == made["message"]) plain = made;
    }
  }
  if (auto words = compare_field(message, "message", plain["message"])) return words;
  return compare_field(finish, "finish_reason", plain["finish_reason"]);
}

// Whether a text is that of the prompt: what `echo` puts before the answer.
bool is_prompt(const std::string& text, const Context& c) {
  if (c.tokenizer == nullptr) return false;
  for (const bool special : {true, false}) {
    const auto ids = c.tokenizer->encode(text, {.add_special = true, .parse_special = special});
    if (ids.ok() && *ids == c.stamp.request.prompt) return true;
  }
  const auto decoded = c.tokenizer->decode(c.stamp.request.prompt, {.show_control = true, .strip_space_prefix = true});
  return decoded.ok() && utf8_replace(*decoded) == text;
}

Words choice_difference(const Json& shown, size_t index, const Context& c) {
  if (!shown.is_object()) return "it is no object";
  const Choice& choice = c.again.choices[index];
  const auto end = shown.find("finish_reason"), message = shown.find("message"), text = shown.find("text");
  if (message != shown.end()) {
    return message_difference(*message, end == shown.end() ? Json(Json::value_t::discarded) : *end, index, c);
  }
  if (text != shown.end()) {
    const Json answer = as_written(Json(choice.text));
    const auto& whole = answer.get_ref<const std::string&>();
    if (auto words = compare_field(*text, "text", answer)) {
      if (!text->is_string()) return words;
      const auto& found = text->get_ref<const std::string&>();
      if (!found.ends_with(whole) || !is_prompt(found.substr(0, found.size() - whole.size()), c)) return words;
    }
  }
  return compare_present(shown, "finish_reason", openai::finish_word(choice.finish));
}

Words reply_difference(const Json& record, ShownPlace place, const Context& c) {
  const Json& list = record["choices"];
  const size_t n = c.again.choices.size();
  if (!list.is_array() || list.size() < place.first + n || (place.last && list.size() > place.first + n)) {
    return fmt::format("choices: {} are shown, recorded were {}{}", list.is_array() ? list.size() : 0, place.first + n,
                       place.last ? "" : " or more");
  }
  for (size_t i = 0; i < n; ++i) {
    if (auto words = choice_difference(list[place.first + i], i, c)) {
      return fmt::format("choice {}: {}", place.first + i, *words);
    }
  }
  const auto usage = record.find("usage");
  const bool alone = place.first == 0 && place.last;  // otherwise it is the sum of several
  if (!alone || usage == record.end() || !usage->is_object()) return std::nullopt;
  const int64_t prompt = c.again.prompt_tokens, generated = c.again.generated_tokens;
  for (const auto& [key, computed] : {std::pair<const char*, int64_t>{"prompt_tokens", prompt},
                                      {"completion_tokens", generated},
                                      {"total_tokens", prompt + generated}}) {
    if (auto words = compare_present(*usage, key, computed)) return "usage." + *words;
  }
  return std::nullopt;
}

}  // namespace

Json shown_part(const Value& record) {
  if (!record.is_dict() || record.find("minfer") == nullptr) return {};
  chat::Dict shown;
  for (const auto& [key, value] : record.as_dict().entries()) {
    if (key.as_string() != "minfer") shown.set(key, value);
  }
  const auto text = chat::dump_json(Value::dict(std::move(shown)));
  return text.ok() ? Json::parse(*text, nullptr, false) : Json();
}

std::optional<std::string> shown_difference(const Json& shown, ShownPlace place, const Stamp& stamp,
                                            const Response& again, const Tokenizer* tokenizer,
                                            const chat::AnswerFormat& format) {
  Response recorded = again;
  for (size_t i = 0; i < stamp.finish.size(); ++i) {
    FinishReason& now = recorded.choices[i].finish;
    // What the context cut ends at the same length now, by its limit.
    if (stamp.finish[i] == FinishReason::kContext && now == FinishReason::kLength) now = FinishReason::kContext;
    if (stamp.finish[i] == now) continue;
    return fmt::format("choice {}: stamp.finish is \"{}\", computed \"{}\"", place.first + i,
                       finish_reason_name(stamp.finish[i]), finish_reason_name(now));
  }
  if (!shown.is_object()) return std::nullopt;
  if (!shown.contains("choices")) return run_difference(shown, stamp, recorded);
  Context c = {stamp, recorded, tokenizer, format, {}};
  if (const auto id = shown.find("id"); id != shown.end() && id->is_string()) {
    const auto& text = id->get_ref<const std::string&>();
    c.id = text.substr(text.find('-') + 1);
  }
  return reply_difference(shown, place, c);
}

}  // namespace minfer::cli
