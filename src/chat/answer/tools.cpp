// Looking into tool definitions and writing JSON.
#include "chat/answer/tools.h"

#include "chat/json.h"

namespace minfer::chat::answer {

Value Tools::find(std::string_view name) const {
  if (!definitions_.is_sequence()) return Value::none();
  for (const Value& tool : definitions_.items()) {
    const Value* inner = tool.find("function");
    const Value& function = inner != nullptr ? *inner : tool;
    const Value* found = function.find("name");
    if (found != nullptr && found->is_string() && found->as_string() == name) return function;
  }
  return Value::none();
}

Tools::Type Tools::type_of(std::string_view function, std::string_view parameter) const {
  const Value f = find(function);
  const Value* parameters = f.find("parameters");
  if (parameters == nullptr) return Type::kUnknown;
  const Value* properties = parameters->find("properties");
  if (properties == nullptr) return Type::kUnknown;
  const Value* schema = properties->find(parameter);
  if (schema == nullptr) return Type::kUnknown;
  const Value* type = schema->find("type");
  if (type == nullptr || !type->is_string()) return Type::kUnknown;
  return type->as_string() == "string" ? Type::kString : Type::kOther;
}

void append_json_escaped(std::string& out, std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<uint8_t>(c) < 0x20) {
          out += "\\u00";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        } else {
          out += c;
        }
    }
  }
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(out, text);
  out += '"';
  return out;
}

std::string json_of_text(std::string_view text, Tools::Type type) {
  if (type == Tools::Type::kString) return json_string(text);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return json_string(text);
  const std::string_view inner = text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
  if (inner == "True") return "true";
  if (inner == "False") return "false";
  if (inner == "None") return "null";
  const auto value = parse_json(inner);
  // Words in quotes are JSON only where something other than a string could be meant.
  if (value.ok() && (!value->is_string() || type == Tools::Type::kOther)) return std::string(inner);
  return json_string(text);
}

}  // namespace minfer::chat::answer
