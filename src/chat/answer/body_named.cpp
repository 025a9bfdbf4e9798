// Calls whose name stands outside the JSON of their arguments.
#include "chat/answer/bodies.h"

namespace minfer::chat::answer {

namespace {

// "functions.name:0" is an id that holds the name.
std::string name_in_id(std::string_view id) {
  std::string_view name = id;
  if (name.starts_with("functions.")) name.remove_prefix(10);
  const size_t colon = name.rfind(':');
  if (colon != name.npos && name.find_first_not_of("0123456789", colon + 1) == name.npos) name = name.substr(0, colon);
  return std::string(name);
}

// What may follow a call: its closing mark, then another call or the section's end. `more` = another call begins, its
// first byte not taken yet.
Read read_after_call(Machine& m, const CallSyntax& s, bool& more) {
  more = false;
  if (!s.each_close.empty()) {
    co_await read_space(m);
    const bool ok = co_await read_literal(m, s.each_close);
    if (!ok) co_return false;
    m.silent();
  }
  if (s.each_open.empty() && s.close.empty()) co_return true;
  co_await read_space(m);
  if (s.each_open.empty() || s.close.empty()) {
    const bool ok = co_await read_literal(m, s.each_open.empty() ? s.close : s.each_open);
    more = ok && !s.each_open.empty();
    if (ok && !more) m.silent();
    co_return ok;
  }
  int which = 0;
  const bool ok = co_await read_one_of(m, s.each_open, s.close, which);
  more = ok && which == 0;
  if (ok && !more) m.silent();
  co_return ok;
}

// Text of a name until one of two marks. `which` = the one found.
Read read_name_until(Machine& m, std::string_view a, std::string_view b, std::string& out, int& which) {
  if (b.empty()) {
    which = 0;
    const bool ok = co_await read_name(m, a, out);
    co_return ok;
  }
  const bool named = co_await read_word(m, out);
  if (!named) co_return false;
  const int c = co_await m.peek();
  if (c == '{') co_return true;  // Mistral's models leave the mark out now and then
  const bool ok = co_await read_one_of(m, a, b, which);
  co_return ok;
}

}  // namespace

Read body_named(Machine& m, const CallSyntax& s) {
  co_await read_space(m);
  if (!s.each_open.empty()) {
    const bool ok = co_await read_literal(m, s.each_open);
    if (!ok) co_return false;
  } else {
    const int c = co_await m.peek();
    // Mistral's older form: a list of objects after the same marker.
    if (c == '[' || c == '{') {
      const bool ok = co_await body_json(m, {.open = s.open}, false);
      co_return ok;
    }
  }
  for (bool more = true; more;) {
    std::string name, id;
    int which = 0;
    co_await read_space(m);
    bool ok = true;
    if (!s.id_end.empty()) {
      ok = co_await read_name(m, s.id_end, id);
      if (!ok) co_return false;
    }
    ok = co_await read_name_until(m, s.name_end, s.id_mark, name, which);
    if (!ok) co_return false;
    if (which == 1) {
      ok = co_await read_name(m, s.name_end, id);
      if (!ok) co_return false;
    }
    if (s.id_is_name) {
      id = name;
      name = name_in_id(id);
    }
    ok = co_await read_call_arguments(m, std::move(name), std::move(id));
    if (!ok || !m.call_end()) co_return false;
    ok = co_await read_after_call(m, s, more);
    if (!ok) co_return false;
  }
  co_return true;
}

Read body_deepseek(Machine& m, const CallSyntax& s) {
  co_await read_space(m);
  bool ok = co_await read_literal(m, s.each_open);
  if (!ok) co_return false;
  for (bool more = true; more;) {
    std::string name;
    co_await read_space(m);
    ok = co_await read_name(m, s.name_end, name);
    if (!ok) co_return false;
    co_await read_space(m);
    int c = co_await m.peek();
    bool fence = false;
    if (c != '{' && c != '"') {  // what was read was the type, "function"
      name.clear();
      ok = co_await read_word(m, name);
      if (!ok) co_return false;
      co_await read_space(m);
      c = co_await m.peek();
      fence = c == '`';
      if (fence) {
        ok = co_await read_literal(m, "```json");
        if (!ok) co_return false;
      }
    }
    ok = co_await read_call_arguments(m, std::move(name), "");
    if (!ok || !m.call_end()) co_return false;
    if (fence) {
      co_await read_space(m);
      ok = co_await read_literal(m, "```");
      if (!ok) co_return false;
    }
    ok = co_await read_after_call(m, s, more);
    if (!ok) co_return false;
  }
  co_return true;
}

Read body_mcp(Machine& m, const CallSyntax& s) {
  for (;;) {
    std::string server, name, rest;
    co_await read_space(m);
    int which = 0;
    bool ok = co_await read_one_of(m, "<server_name>", s.close, which);
    if (!ok) co_return false;
    if (which == 1) {
      if (m.raw().find(s.open) != std::string::npos) co_return false;  // no call between the tags
      m.silent();
      co_return true;
    }
    ok = co_await read_until(m, "</server_name>", server);
    if (!ok) co_return false;
    co_await read_space(m);
    ok = co_await read_literal(m, "<tool_name>");
    if (!ok) co_return false;
    ok = co_await read_name(m, "</tool_name>", name);
    if (!ok) co_return false;
    co_await read_space(m);
    ok = co_await read_literal(m, "<arguments>");
    if (!ok) co_return false;
    ok = co_await read_call_arguments(m, std::move(name), "");
    if (!ok) co_return false;
    co_await read_space(m);
    ok = co_await read_literal(m, "</arguments>");
    if (!ok || !m.call_end()) co_return false;
  }
}

// Functionary: ">>>all" before text, ">>>name" before a call's JSON.
Read body_recipient(Machine& m, const CallSyntax& s) {
  std::string name;
  const bool ok = co_await read_name(m, "\n", name);
  if (!ok) co_return false;
  if (name == "all") {
    m.silent();
    co_return true;
  }
  if (m.tools.any() && !m.tools.has(name)) co_return false;
  const bool whole = co_await read_call_arguments(m, std::move(name), "");
  co_return whole&& m.call_end();
}

}  // namespace minfer::chat::answer
