// Jinja source to tokens, with whitespace control already applied to the text between tags
// (trim_blocks and lstrip_blocks on, one trailing newline dropped, "-" and "+" signs honoured).
// Errors:  Raised with the position; unbalanced brackets, unknown characters, unclosed comments, bad escapes.
// Source:  https://jinja.palletsprojects.com/en/3.1.x/templates/ and the behaviour of Jinja2 3.1.6.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minfer::chat::jinja {

struct Pos {
  uint32_t line = 0;    // from 1; 0: unknown
  uint32_t column = 0;  // in characters from 1
};

enum class Tok : uint8_t {
  kData,           // text between tags
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,   // value unescaped
  kInteger,  // value: its digits without underscores, with 0x/0o/0b
  kFloat,
  kOperator,  // value: its spelling
  kEof,
};

struct Token {
  Tok type;
  Pos pos;
  std::string value;

  bool is(Tok t, std::string_view v) const { return type == t && value == v; }
  bool op(std::string_view v) const { return is(Tok::kOperator, v); }
  bool name(std::string_view v) const { return is(Tok::kName, v); }
};

// "end of template", "name 'x'", ... for messages.
std::string describe(const Token& token);

std::vector<Token> tokenize(std::string_view source);

}  // namespace minfer::chat::jinja
