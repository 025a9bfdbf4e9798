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

namespace {

constexpr int kMaxLiteralDepth = 64;  // each level is a call on the stack

// A Python literal as JSON: strings, numbers, True, False, None, lists, tuples, dicts with string keys.
class PythonLiteral {
 public:
  explicit PythonLiteral(std::string_view text) : text_(text) {}
  bool convert(std::string& out) {
    if (!value(out, 0)) return false;
    space();
    return at_ == text_.size();
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : 0; }
  void space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool string(std::string& out) {
    const char quote = text_[at_++];
    std::string bytes;
    while (at_ < text_.size() && text_[at_] != quote) {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        const size_t known = std::string_view("ntr\\'\"").find(c);
        if (known == std::string_view::npos) return false;
        c = "\n\t\r\\'\""[known];
      }
      bytes += c;
    }
    if (at_ == text_.size()) return false;
    ++at_;
    out += json_string(bytes);
    return true;
  }
  bool scalar(std::string& out) {
    const size_t begin = at_;
    while (at_ < text_.size() && std::string_view(",:]}) \t\r\n").find(text_[at_]) == std::string_view::npos) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "True" || word == "False" || word == "None") {
      out += word == "True" ? "true" : word == "False" ? "false" : "null";
      return true;
    }
    out += word;
    return parse_json(word).ok();
  }
  bool value(std::string& out, int depth) {
    space();
    const char open = peek();
    if (open == '"' || open == '\'') return string(out);
    if (open != '[' && open != '(' && open != '{') return scalar(out);
    if (depth >= kMaxLiteralDepth) return false;
    ++at_;
    const char close = open == '{' ? '}' : open == '[' ? ']' : ')';
    out += open == '{' ? '{' : '[';
    for (bool first = true; !take(close); first = false) {
      if (!first && !take(',')) return false;
      if (!first && take(close)) break;
      if (!first) out += ", ";
      if (open == '{') {
        space();
        if ((peek() != '"' && peek() != '\'') || !string(out) || !take(':')) return false;
        out += ": ";
      }
      if (!value(out, depth + 1)) return false;
    }
    out += open == '{' ? '}' : ']';
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string json_of_text(std::string_view text, Tools::Type type) {
  if (type == Tools::Type::kString) return json_string(text);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return json_string(text);
  const std::string_view inner = text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
  // Words in quotes are JSON only where something other than a string could be meant.
  const bool quoted = inner[0] == '"' || inner[0] == '\'';
  if (quoted && type != Tools::Type::kOther) return json_string(text);
  if (parse_json(inner).ok()) return std::string(inner);
  std::string json;
  return PythonLiteral(inner).convert(json) && parse_json(json).ok() ? json : json_string(text);
}

}  // namespace minfer::chat::answer
