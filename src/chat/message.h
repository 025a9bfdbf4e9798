// Conversations as templates see them: a message is the JSON object the client sent, checked once, its unknown fields
// and key order kept (templates print whole messages and tools as JSON).
// Errors:  a wrong type names the message's index, the field, what was found and what was expected.
// Threads: plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "chat/value.h"

namespace minfer::chat {

struct ToolCall {
  std::string id;    // empty when absent
  std::string name;  // function.name
  Value arguments;   // function.arguments: a dict, or a string holding JSON, as the client sent it
};

class Message {
 public:
  // {"role": role, "content": content}
  static Message make(std::string role, std::string content);
  // Checks role (a string), content (string, null or a list of text parts; other types are refused by name),
  // tool_calls, tool_call_id, name and reasoning_content; `index` is named in errors.
  static Result<Message> from_value(Value object, size_t index = 0);

  const std::string& role() const;
  // The text of the content: the string itself, or the text parts joined; "" for null.
  std::string content_text() const;
  std::vector<ToolCall> tool_calls() const;
  std::string tool_call_id() const;
  std::string name() const;
  std::string reasoning_content() const;

  // Sets or replaces one field ("reasoning_content", "tool_calls", ...).
  void set(std::string key, Value value);
  const Value& value() const { return object_; }

 private:
  explicit Message(Value object) : object_(std::move(object)) {}
  Value object_;  // always a dict with a string "role"
};

// A JSON array of messages, or an object with "messages" (a request body).
Result<std::vector<Message>> messages_from_json(std::string_view json);
Result<std::vector<Message>> messages_from_value(const Value& list);

// A JSON array of tool definitions, or an object with "tools"; each must be an object. null gives none.
Result<Value> tools_from_json(std::string_view json);
Status check_tools(const Value& tools);

}  // namespace minfer::chat
