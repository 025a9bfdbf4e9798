// Values as text: str(), repr() and json.dumps(), each byte keeping its origin.
#pragma once

#include <string>

#include "chat/jinja/interp.h"

namespace minfer::chat::jinja {

std::string float_repr(double d);                         // Python's: shortest digits that read back the same
Text to_text(Interp& in, const Value& v);                 // str(v)
void append_repr(Interp& in, Text& out, const Value& v);  // repr(v)
std::string repr_string(std::string_view s);              // repr of a str
Text escape_html(Interp& in, const Text& t);              // & < > " '

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool pretty = false;  // indent given
  std::string indent;   // one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// json.dumps. What holds any data is data as a whole, brackets and quotes included.
Text to_json(Interp& in, const Value& v, const JsonStyle& style);

}  // namespace minfer::chat::jinja
