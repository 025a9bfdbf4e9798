// Calls with a tag for each parameter. Values are plain text: schemas, or how they look, say what they are.
#include "chat/answer/bodies.h"

namespace minfer::chat::answer {

namespace {

// The end of the last whole character of text[0, end).
size_t whole_characters(std::string_view text, size_t end) {
  size_t lead = end;
  while (lead > 0 && end - lead < 3 && (static_cast<uint8_t>(text[lead - 1]) & 0xC0) == 0x80) --lead;
  if (lead == 0) return end;
  const auto c = static_cast<uint8_t>(text[lead - 1]);
  const size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
  return lead - 1 + length <= end ? end : lead - 1;
}

struct Value {
  std::string_view close;
  bool trim_lines = false;
  Tools::Type type = Tools::Type::kUnknown;
};

// A value until its closing tag; a string streams as it comes.
Read read_value(Machine& m, Value v) {
  std::string text;
  const bool string = v.type == Tools::Type::kString;
  size_t sent = 0;
  if (v.trim_lines) {
    const int c = co_await m.peek();
    if (c == '\n') m.take_raw();
  }
  if (string) m.call_arguments("\"");
  for (;;) {
    const int c = co_await m.peek();
    if (c == kEnd) co_return false;
    m.take_raw();
    text += static_cast<char>(c);
    if (text.ends_with(v.close)) break;
    // The tail may be the closing tag with a line break before it.
    const size_t tail = v.close.size() + (v.trim_lines ? 1 : 0);
    if (!string || text.size() <= tail) continue;
    const size_t end = whole_characters(text, text.size() - tail);
    if (end <= sent) continue;
    std::string piece;
    append_json_escaped(piece, std::string_view(text).substr(sent, end - sent));
    m.call_arguments(piece);
    sent = end;
  }
  text.resize(text.size() - v.close.size());
  if (v.trim_lines && text.ends_with('\n') && text.size() > sent) text.pop_back();
  if (string) {
    std::string piece;
    append_json_escaped(piece, std::string_view(text).substr(sent));
    m.call_arguments(piece + "\"");
  } else {
    m.call_arguments(json_of_text(text, v.type));
  }
  co_return true;
}

// The comma or brace, and the key.
void put_key(Machine& m, bool& first, std::string_view key) {
  m.call_arguments((first ? "{" : ", ") + json_string(key) + ": ");
  first = false;
}

// One function's parameters and closing tag; its opening tag is taken.
Read read_function(Machine& m, const CallSyntax& s) {
  std::string name;
  bool ok = co_await read_name(m, s.function_name_end, name);
  if (!ok || !is_name(name)) co_return false;
  m.call_begin(name, "");
  bool first = true;
  for (;;) {
    co_await read_space(m);
    int which = 0;
    ok = co_await read_one_of(m, s.parameter_open, s.function_close, which);
    if (!ok) co_return false;
    if (which == 1) break;
    std::string key;
    ok = co_await read_until(m, s.parameter_name_end, key);
    if (!ok || !is_name(key)) co_return false;
    Tools::Type type = m.tools.type_of(name, key);
    if (s.typed) {
      ok = co_await read_one_of(m, "true\">", "false\">", which);
      if (!ok) co_return false;
      type = which == 0 ? Tools::Type::kString : Tools::Type::kOther;
    }
    put_key(m, first, key);
    ok = co_await read_value(m, {s.parameter_close, s.trim_lines, type});
    if (!ok) co_return false;
  }
  m.call_arguments(first ? "{}" : "}");
  co_return m.call_end();
}

}  // namespace

Read body_tagged(Machine& m, const CallSyntax& s) {
  bool ok = true;
  if (s.open != s.function_open) {
    co_await read_space(m);
    ok = co_await read_literal(m, s.function_open);
    if (!ok) co_return false;
  }
  for (;;) {
    ok = co_await read_function(m, s);
    if (!ok) co_return false;
    if (s.close.empty()) co_return true;
    co_await read_space(m);
    int which = 0;
    ok = co_await read_one_of(m, s.function_open, s.close, which);
    if (!ok) co_return false;
    if (which == 1) break;
  }
  m.silent();
  co_return true;
}

Read body_glm(Machine& m, const CallSyntax& s) {
  std::string name;
  co_await read_space(m);
  int c = co_await m.peek();
  if (c == '{') {  // some of them write Hermes' JSON
    const bool ok = co_await body_json(m, s, false);
    co_return ok;
  }
  bool ok = co_await read_word(m, name);
  if (!ok) co_return false;
  m.call_begin(name, "");
  bool first = true;
  for (;;) {
    co_await read_space(m);
    int which = 0;
    ok = co_await read_one_of(m, "<arg_key>", s.close, which);
    if (!ok) co_return false;
    if (which == 1) break;
    std::string key;
    ok = co_await read_until(m, "</arg_key>", key);
    if (!ok || !is_name(key)) co_return false;
    co_await read_space(m);
    ok = co_await read_literal(m, "<arg_value>");
    if (!ok) co_return false;
    put_key(m, first, key);
    ok = co_await read_value(m, {"</arg_value>", false, m.tools.type_of(name, key)});
    if (!ok) co_return false;
  }
  m.call_arguments(first ? "{}" : "}");
  co_return m.call_end();
}

}  // namespace minfer::chat::answer
