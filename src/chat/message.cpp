// Checks and accessors of messages and tool definitions.
#include "chat/message.h"

#include "chat/json.h"

namespace minfer::chat {

namespace {

Error bad(size_t index, std::string_view field, const Value& found, std::string_view expected) {
  return make_error(ErrorCode::kInvalidArgument, "[chat] message {}: '{}' is {}, expected {}", index, field,
                    found.is_none() ? "null" : type_name(found), expected);
}

Status check_optional_string(const Value& object, size_t index, const char* field) {
  const Value* v = object.find(field);
  if (v != nullptr && !v->is_string() && !v->is_none()) return bad(index, field, *v, "a string");
  return {};
}

Status check_content(const Value& content, size_t index) {
  if (content.is_string() || content.is_none()) return {};
  if (!content.is(Value::Kind::kList)) return bad(index, "content", content, "a string, null or a list of parts");
  for (size_t i = 0; i < content.items().size(); ++i) {
    const Value& part = content.items()[i];
    const Value* type = part.find("type");
    if (type == nullptr || !type->is_string()) return bad(index, "content", part, "parts to be objects with a 'type'");
    if (type->as_string() != "text") {
      return make_error(ErrorCode::kUnsupported,
                        "[chat] message {}: part {} of 'content' is of type '{}', expected 'text'", index, i,
                        type->as_string());
    }
    const Value* text = part.find("text");
    if (text == nullptr || !text->is_string()) {
      return bad(index, "content", text == nullptr ? Value::none() : *text, "the 'text' of a text part to be a string");
    }
  }
  return {};
}

Status check_tool_calls(const Value& calls, size_t index) {
  if (calls.is_none()) return {};
  if (!calls.is(Value::Kind::kList)) return bad(index, "tool_calls", calls, "a list");
  for (const Value& call : calls.items()) {
    if (!call.is_dict()) return bad(index, "tool_calls", call, "objects");
    const Value* function = call.find("function");
    const Value& holder = function != nullptr ? *function : call;
    if (!holder.is_dict()) return bad(index, "tool_calls[].function", holder, "an object");
    const Value* name = holder.find("name");
    if (name == nullptr || !name->is_string()) {
      return bad(index, "tool_calls[].function.name", name == nullptr ? Value::none() : *name, "a string");
    }
    const Value* arguments = holder.find("arguments");
    if (arguments != nullptr && !arguments->is_string() && !arguments->is_dict() && !arguments->is_none()) {
      return bad(index, "tool_calls[].function.arguments", *arguments, "an object or a string of JSON");
    }
  }
  return {};
}

std::string string_field(const Value& object, std::string_view key) {
  const Value* v = object.find(key);
  return v != nullptr && v->is_string() ? v->as_string() : std::string();
}

}  // namespace

Message Message::make(std::string role, std::string content) {
  return Message(
      Value::object({{"role", Value::string(std::move(role))}, {"content", Value::string(std::move(content))}}));
}

Result<Message> Message::from_value(Value object, size_t index) {
  if (!object.is_dict()) {
    return make_error(ErrorCode::kInvalidArgument, "[chat] message {}: found {}, expected an object", index,
                      object.is_none() ? "null" : type_name(object));
  }
  const Value* role = object.find("role");
  if (role == nullptr) return make_error(ErrorCode::kInvalidArgument, "[chat] message {}: 'role' is missing", index);
  if (!role->is_string() || role->as_string().empty()) return bad(index, "role", *role, "a non-empty string");
  if (const Value* content = object.find("content")) MINFER_TRY(check_content(*content, index));
  if (const Value* calls = object.find("tool_calls")) MINFER_TRY(check_tool_calls(*calls, index));
  for (const char* field : {"tool_call_id", "name", "reasoning_content"}) {
    MINFER_TRY(check_optional_string(object, index, field));
  }
  return Message(std::move(object));
}

const std::string& Message::role() const { return object_.find("role")->as_string(); }

std::string Message::content_text() const {
  const Value* content = object_.find("content");
  if (content == nullptr || content->is_none()) return {};
  if (content->is_string()) return content->as_string();
  std::string text;
  if (content->is_sequence()) {
    for (const Value& part : content->items()) {
      if (string_field(part, "type") == "text") text += string_field(part, "text");
    }
  }
  return text;
}

std::vector<ToolCall> Message::tool_calls() const {
  std::vector<ToolCall> out;
  const Value* calls = object_.find("tool_calls");
  if (calls == nullptr || !calls->is_sequence()) return out;
  for (const Value& call : calls->items()) {
    const Value* function = call.find("function");
    const Value& holder = function != nullptr ? *function : call;
    const Value* arguments = holder.find("arguments");
    out.push_back(
        {string_field(call, "id"), string_field(holder, "name"), arguments != nullptr ? *arguments : Value()});
  }
  return out;
}

std::string Message::tool_call_id() const { return string_field(object_, "tool_call_id"); }
std::string Message::name() const { return string_field(object_, "name"); }
std::string Message::reasoning_content() const { return string_field(object_, "reasoning_content"); }

void Message::set(std::string key, Value value) {
  MINFER_CHECK(key != "role" || value.is_string());
  Dict copy = object_.as_dict();
  copy.set(std::move(key), std::move(value));
  object_ = Value::dict(std::move(copy));
}

Result<std::vector<Message>> messages_from_value(const Value& list) {
  const Value* inner = list.find("messages");
  const Value& messages = inner != nullptr ? *inner : list;
  if (!messages.is(Value::Kind::kList)) {
    return make_error(ErrorCode::kInvalidArgument, "[chat] messages: found {}, expected a list of messages",
                      messages.is_none() ? "null" : type_name(messages));
  }
  std::vector<Message> out;
  for (const Value& m : messages.items()) out.push_back(MINFER_TRY(Message::from_value(m, out.size())));
  return out;
}

Result<std::vector<Message>> messages_from_json(std::string_view json) {
  return messages_from_value(MINFER_TRY_CTX(parse_json(json), "messages"));
}

Status check_tools(const Value& tools) {
  if (tools.is_none()) return {};
  if (!tools.is(Value::Kind::kList)) {
    return make_error(ErrorCode::kInvalidArgument, "[chat] tools: found {}, expected a list", type_name(tools));
  }
  for (size_t i = 0; i < tools.items().size(); ++i) {
    const Value& tool = tools.items()[i];
    if (!tool.is_dict()) {
      return make_error(ErrorCode::kInvalidArgument, "[chat] tool {}: found {}, expected an object", i,
                        tool.is_none() ? "null" : type_name(tool));
    }
  }
  return {};
}

Result<Value> tools_from_json(std::string_view json) {
  Value v = MINFER_TRY_CTX(parse_json(json), "tools");
  if (const Value* inner = v.find("tools")) v = Value(*inner);
  MINFER_TRY(check_tools(v));
  return v;
}

}  // namespace minfer::chat
