// Calls that are JSON objects: {"name": ..., "arguments": {...}} and its dialects, alone, in a row or in a list.
#include "chat/answer/bodies.h"
#include "chat/json.h"

namespace minfer::chat::answer {

namespace {

enum class Key : uint8_t { kName, kArguments, kId, kFunction, kType, kOther };

Key key_of(std::string_view key) {
  if (key == "name" || key == "tool_name") return Key::kName;
  if (key == "arguments" || key == "parameters" || key == "args") return Key::kArguments;
  if (key == "id" || key == "tool_call_id" || key == "call_id") return Key::kId;
  if (key == "function") return Key::kFunction;
  return key == "type" || key == "index" ? Key::kType : Key::kOther;
}

struct Object {
  std::string name, id;
  std::string early;   // arguments that came before the name
  bool begun = false;  // the call's arguments are on their way
  bool has_arguments = false;
  bool bare = false;
  bool ready(const Machine& m) const { return is_name(name) && (!bare || m.tools.has(name)); }
};

// A quoted key and its colon.
Read read_key(Machine& m, std::string& key) {
  const int c = co_await m.peek();
  if (c != '"') co_return false;
  std::string literal;
  const bool ok = co_await read_json(m, literal);
  if (!ok || !decode_json_string(literal, key)) co_return false;
  co_await read_space(m);
  const bool colon = co_await read_literal(m, ":");
  co_await read_space(m);
  co_return colon;
}

// After a member: true for another one.
Read read_comma(Machine& m, char close, bool& more) {
  co_await read_space(m);
  const int c = co_await m.peek();
  if (c != ',' && c != close) co_return false;
  m.take_raw();
  more = c == ',';
  if (more) co_await read_space(m);
  co_return true;
}

// The members of an object up to its brace; a nested "function" object has a level of its own.
Read read_members(Machine& m, Object& o, bool nested) {
  const int first = co_await m.peek();
  if (first == '}') {
    m.take_raw();
    co_return true;
  }
  for (bool more = true; more;) {
    std::string key, json;
    const bool has_key = co_await read_key(m, key);
    if (!has_key) co_return false;
    const Key kind = key_of(key);
    const int c = co_await m.peek();
    if (kind == Key::kArguments && !o.has_arguments && o.ready(m)) {
      o.has_arguments = o.begun = true;
      const bool ok = co_await read_call_arguments(m, o.name, o.id);
      if (!ok) co_return false;
    } else if (kind == Key::kFunction && !nested && c == '{') {
      m.take_raw();
      co_await read_space(m);
      const bool ok = co_await read_members(m, o, true);
      if (!ok) co_return false;
    } else {
      if (o.bare && kind == Key::kOther) co_return false;
      const bool ok = co_await read_json(m, json);
      if (!ok) co_return false;
      const bool is_name_key = kind == Key::kName || (kind == Key::kFunction && c == '"');
      if (is_name_key) {
        if (o.begun || !decode_json_string(json, o.name) || !o.ready(m)) co_return false;
      } else if (kind == Key::kId) {
        if (!o.begun && (c != '"' || !decode_json_string(json, o.id))) o.id = c == 'n' ? "" : json;
      } else if (kind == Key::kArguments) {
        if (o.has_arguments) co_return false;
        o.has_arguments = true;
        o.early = std::move(json);
      }
    }
    const bool ok = co_await read_comma(m, '}', more);
    if (!ok) co_return false;
  }
  co_return true;
}

Read read_object(Machine& m, bool bare) {
  Object o;
  o.bare = bare;
  bool ok = co_await read_literal(m, "{");
  if (!ok) co_return false;
  co_await read_space(m);
  ok = co_await read_members(m, o, false);
  if (!ok || !o.ready(m)) co_return false;
  if (!o.begun) {
    std::string arguments = o.early.empty() || o.early == "null" ? "{}" : o.early;
    if (arguments[0] == '"' && !decode_json_string(o.early, arguments)) co_return false;
    m.call_begin(o.name, o.id);
    m.call_arguments(arguments);
  }
  co_return m.call_end();
}

// [{"name": {arguments}}, ...]: one key, the function's name.
Read read_single_key(Machine& m) {
  std::string name;
  bool ok = co_await read_literal(m, "{");
  if (!ok) co_return false;
  co_await read_space(m);
  ok = co_await read_key(m, name);
  if (!ok) co_return false;
  ok = co_await read_call_arguments(m, std::move(name), "");
  if (!ok) co_return false;
  co_await read_space(m);
  ok = co_await read_literal(m, "}");
  co_return ok&& m.call_end();
}

// After the last call: the closing marker, when it is there.
Read read_close(Machine& m, std::string_view close) {
  if (close.empty()) co_return true;
  co_await read_space(m);
  const bool ok = co_await read_literal(m, close);
  if (ok) m.silent();
  co_return ok;
}

}  // namespace

Read body_json(Machine& m, const CallSyntax& s, bool bare) {
  co_await read_space(m);
  int c = co_await m.peek();
  // A model shows its JSON as code now and then.
  if (c == '`' && !bare) {
    bool ok = co_await read_literal(m, "```");
    if (!ok) co_return false;
    ok = co_await read_optional(m, "json");
    if (!ok) co_return false;
    co_await read_space(m);
    c = co_await m.peek();
  }
  if (c == '[') {
    m.take_raw();
    co_await read_space(m);
    for (bool more = true; more;) {
      bool ok = co_await read_object(m, bare);
      if (!ok) co_return false;
      ok = co_await read_comma(m, ']', more);
      if (!ok) co_return false;
    }
    m.silent();
  } else {
    if (c != '{') co_return false;
    while (c == '{') {
      const bool ok = co_await read_object(m, bare);
      if (!ok) co_return false;
      co_await read_space(m);
      c = co_await m.peek();
      if (c == ';' || c == ',') {  // Llama writes several as {...}; {...}
        m.take_raw();
        co_await read_space(m);
        c = co_await m.peek();
        if (c != '{') co_return false;
      }
    }
  }
  co_await read_space(m);
  c = co_await m.peek();
  if (c == '`' && !s.close.starts_with('`')) {
    const bool ok = co_await read_literal(m, "```");
    if (!ok) co_return false;
    m.silent();
  }
  const bool ok = co_await read_close(m, s.close);
  co_return ok;
}

Read body_json_by_key(Machine& m, const CallSyntax& s) {
  co_await read_space(m);
  bool ok = co_await read_literal(m, "[");
  if (!ok) co_return false;
  co_await read_space(m);
  for (bool more = true; more;) {
    ok = co_await read_single_key(m);
    if (!ok) co_return false;
    ok = co_await read_comma(m, ']', more);
    if (!ok) co_return false;
  }
  m.silent();
  ok = co_await read_close(m, s.close);
  co_return ok;
}

}  // namespace minfer::chat::answer
