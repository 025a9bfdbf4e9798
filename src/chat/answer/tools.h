// What an answer's parser needs of the request's tools: their names, and which parameters are strings.
// Threads: immutable once made.
#pragma once

#include <string>
#include <string_view>

#include "chat/value.h"

namespace minfer::chat::answer {

class Tools {
 public:
  // A list of tool definitions ({"function": {...}} or the inner object), or anything else for none.
  explicit Tools(const Value& definitions) : definitions_(definitions) {}

  bool any() const { return definitions_.is_sequence() && !definitions_.items().empty(); }
  bool has(std::string_view name) const { return !find(name).is_none(); }

  enum class Type : uint8_t { kUnknown, kString, kOther };
  Type type_of(std::string_view function, std::string_view parameter) const;

 private:
  Value find(std::string_view name) const;  // the function's object
  Value definitions_;
};

// The JSON of a parameter that came as plain text: a string where the schema says so, otherwise the value that it
// spells in JSON or in Python (some templates print lists and dicts so), otherwise a string.
std::string json_of_text(std::string_view text, Tools::Type type);

// `text` as it stands between the quotes of a JSON string.
void append_json_escaped(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

}  // namespace minfer::chat::answer
