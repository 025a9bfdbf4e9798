// Tagging the last message and cutting the rendering.
#include "chat/continue_message.h"

#include <algorithm>

#include "chat/jinja/unicode.h"

namespace minfer::chat {

namespace {

// transformers' own, so that a template that measures or splits the text does the same with it.
constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kTagStripped = kTag.substr(0, kTag.size() - 1);

// The names under which transformers hands reasoning to templates.
constexpr std::string_view kReasoningFields[] = {"reasoning_content", "thinking", "reasoning"};

struct ThinkingTags {
  std::string_view open, close;
};
constexpr ThinkingTags kThinking[] = {{"<think>", "</think>"},
                                      {"<thinking>", "</thinking>"},
                                      {"<thought>", "</thought>"},
                                      {"<reasoning>", "</reasoning>"},
                                      {"<seed:think>", "</seed:think>"},
                                      {"[THINK]", "[/THINK]"},
                                      {"<|START_THINKING|>", "<|END_THINKING|>"}};

// str.rstrip: the length without white space (Python's) at the end.
size_t stripped_end(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const jinja::Char c = jinja::decode_before(text, end);
    if (!jinja::is_space(c.code)) break;
    end -= c.bytes;
  }
  return end;
}

std::string_view stripped(std::string_view text) {
  text = text.substr(0, stripped_end(text));
  while (!text.empty()) {
    const jinja::Char c = jinja::decode(text, 0);
    if (!jinja::is_space(c.code)) break;
    text.remove_prefix(c.bytes);
  }
  return text;
}

Value tagged(const Value& v) { return Value::string(v.as_string() + std::string(kTag)); }

}  // namespace

bool is_reasoning_field(std::string_view field) {
  return std::find(std::begin(kReasoningFields), std::end(kReasoningFields), field) != std::end(kReasoningFields);
}

bool opens_thinking(std::string_view text) {
  for (const ThinkingTags& tags : kThinking) {
    const size_t open = text.rfind(tags.open);
    if (open == text.npos) continue;
    if (text.find(tags.close, open) == text.npos) return true;
  }
  return false;
}

Result<TaggedMessages> tag_final_message(const Value& messages, std::string_view field, std::string_view source) {
  const auto error = [&](std::string_view what) {
    return make_error(ErrorCode::kInvalidArgument, "[chat] continue_final_message: {}", what);
  };
  if (!messages.is_sequence() || messages.items().empty()) return error("there is no message to continue");
  std::vector<Value> list = messages.items();
  const Value* value = list.back().find(field);
  if (value == nullptr || value->is_none()) {
    return error(fmt::format("the last message has no '{}' to continue", field));
  }
  std::vector<std::string_view> fields = {field};
  if (is_reasoning_field(field)) {
    fields.clear();
    for (const std::string_view f : kReasoningFields) {
      const Value* same = list.back().find(f);
      if (same != nullptr && equal(*same, *value)) fields.push_back(f);
    }
  }
  const bool read =
      std::any_of(fields.begin(), fields.end(), [&](std::string_view f) { return source.find(f) != source.npos; });
  if (!read) return error(fmt::format("the chat template does not read '{}'", field));

  TaggedMessages out;
  Dict message = list.back().as_dict();
  if (value->is_sequence()) {
    std::vector<Value> parts = value->items();
    size_t i = parts.size();
    while (i > 0 && parts[i - 1].find("text") == nullptr) --i;
    if (i == 0 || !parts[i - 1].find("text")->is_string()) return error("the last message has no text to continue");
    Dict part = parts[i - 1].as_dict();
    out.text = part.find("text")->as_string();
    part.set("text", tagged(*part.find("text")));
    parts[i - 1] = Value::dict(std::move(part));
    message.set(std::string(field), Value::list(std::move(parts)));
  } else if (value->is_string()) {
    out.text = value->as_string();
    const Value with_tag = tagged(*value);
    for (const std::string_view f : fields) message.set(std::string(f), with_tag);
  } else {
    return error(fmt::format("'{}' of the last message is {}, expected text", field, type_name(*value)));
  }
  list.back() = Value::dict(std::move(message));
  out.messages = Value::list(std::move(list));
  return out;
}

Result<Text> cut_at_tag(const Text& rendered, std::string_view text) {
  const std::string& all = rendered.bytes();
  const size_t at = all.rfind(kTagStripped);
  if (at == all.npos || all.find(stripped(text)) == all.npos) {
    return make_error(ErrorCode::kInvalidArgument,
                      "[chat] continue_final_message: the chat template leaves out or changes the text of the last "
                      "message, so that it cannot be continued");
  }
  // A tag that kept its space shows that the template trims nothing.
  const bool kept = std::string_view(all).substr(at).starts_with(kTag);
  return rendered.slice(0, kept ? at : stripped_end(std::string_view(all).substr(0, at)));
}

}  // namespace minfer::chat
