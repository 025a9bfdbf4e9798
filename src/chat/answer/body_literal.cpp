// Calls written as expressions: Gemma's call:name{key:<|"|>text<|"|>} and Python's name(key="text").
#include "chat/answer/bodies.h"

namespace minfer::chat::answer {

namespace {

constexpr int kMaxDepth = 64;  // containers inside each other; each costs a few coroutine frames
constexpr std::string_view kQuote = "<|\"|>";

// A number or a word: what stands until something that ends it, as JSON.
Read read_scalar(Machine& m, std::string& out) {
  std::string word;
  for (;;) {
    const int c = co_await m.peek();
    const bool part =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '+';
    if (!part) break;
    if (word.size() >= kMaxNameBytes) co_return false;
    m.take_raw();
    word += static_cast<char>(c);
  }
  if (word == "True" || word == "true") co_return out += "true", true;
  if (word == "False" || word == "false") co_return out += "false", true;
  if (word == "None" || word == "null") co_return out += "null", true;
  JsonScan scan;
  for (const char c : word) {
    if (scan.step(static_cast<uint8_t>(c)) != JsonScan::Step::kMore) co_return false;
  }
  out += word;
  co_return !word.empty() && scan.whole_at_end();
}

// After an element: whether another one follows or the closing byte was taken.
Read read_separator(Machine& m, char close, bool& more) {
  co_await read_space(m);
  int c = co_await m.peek();
  more = c == ',';
  if (!more && c != static_cast<uint8_t>(close)) co_return false;
  m.take_raw();
  if (!more) co_return true;
  co_await read_space(m);
  c = co_await m.peek();
  if (c == static_cast<uint8_t>(close)) {  // Python allows a comma at the end
    m.take_raw();
    more = false;
  }
  co_return true;
}

// -- Gemma

Read gemma_text(Machine& m, std::string& out) {
  std::string text;
  bool ok = co_await read_literal(m, kQuote);
  if (!ok) co_return false;
  ok = co_await read_until(m, kQuote, text);
  out += json_string(text);
  co_return ok;
}

Read gemma_value(Machine& m, std::string& out, int depth);

// The members after the opening brace, the closing one too.
Read gemma_members(Machine& m, std::string& out, int depth) {
  out += '{';
  int c = co_await m.peek();
  if (c == '}') {
    m.take_raw();
    co_return out += '}', true;
  }
  for (bool more = true; more;) {
    c = co_await m.peek();
    bool ok = true;
    if (c == '<') {
      ok = co_await gemma_text(m, out);
      if (!ok) co_return false;
      ok = co_await read_literal(m, ":");
    } else {
      std::string key;
      while (c != ':') {
        if (c == kEnd || c == '{' || c == '}' || c == ',' || key.size() >= kMaxNameBytes) co_return false;
        m.take_raw();
        key += static_cast<char>(c);
        c = co_await m.peek();
      }
      m.take_raw();
      ok = is_name(key);
      out += json_string(key);
    }
    if (!ok) co_return false;
    out += ": ";
    ok = co_await gemma_value(m, out, depth);
    if (!ok) co_return false;
    ok = co_await read_separator(m, '}', more);
    if (!ok) co_return false;
    out += more ? ", " : "}";
  }
  co_return true;
}

Read gemma_value(Machine& m, std::string& out, int depth) {
  co_await read_space(m);
  int c = co_await m.peek();
  bool ok = true;
  if (c == '<') {
    ok = co_await gemma_text(m, out);
    co_return ok;
  }
  if (c != '{' && c != '[') {
    ok = co_await read_scalar(m, out);
    co_return ok;
  }
  if (depth >= kMaxDepth) co_return false;
  m.take_raw();
  if (c == '{') {
    ok = co_await gemma_members(m, out, depth + 1);
    co_return ok;
  }
  out += '[';
  co_await read_space(m);
  c = co_await m.peek();
  bool more = c != ']';
  if (!more) m.take_raw();
  while (more) {
    ok = co_await gemma_value(m, out, depth + 1);
    if (!ok) co_return false;
    ok = co_await read_separator(m, ']', more);
    if (!ok) co_return false;
    if (more) out += ", ";
  }
  co_return out += ']', true;
}

// -- Python

// A string literal, and those right after it (Python joins them).
Read python_string(Machine& m, std::string& text) {
  const int quote = co_await m.peek();
  m.take_raw();
  for (;;) {
    int c = co_await m.peek();
    if (c == kEnd) co_return false;  // a line break inside is no Python, but what templates teach
    m.take_raw();
    if (c == quote) co_return true;
    if (c != '\\') {
      text += static_cast<char>(c);
      continue;
    }
    c = co_await m.peek();
    if (c == kEnd) co_return false;
    m.take_raw();
    switch (c) {
      case 'n': text += '\n'; break;
      case 't': text += '\t'; break;
      case 'r': text += '\r'; break;
      case '\\':
      case '\'':
      case '"': text += static_cast<char>(c); break;
      case '\n': break;
      case 'u': {
        std::string literal = "\"\\u";
        for (int i = 0; i < 4; ++i) {
          c = co_await m.peek();
          if (c == kEnd) co_return false;
          m.take_raw();
          literal += static_cast<char>(c);
        }
        std::string character;
        if (!decode_json_string(literal + "\"", character)) co_return false;
        text += character;
        break;
      }
      default:  // Python keeps both
        text += '\\';
        text += static_cast<char>(c);
    }
  }
}

Read python_value(Machine& m, std::string& out, int depth) {
  co_await read_space(m);
  int c = co_await m.peek();
  bool ok = true;
  if (c == '"' || c == '\'') {
    std::string text;
    ok = co_await python_string(m, text);
    out += json_string(text);
    co_return ok;
  }
  if (c != '[' && c != '(' && c != '{') {
    ok = co_await read_scalar(m, out);
    co_return ok;
  }
  if (depth >= kMaxDepth) co_return false;
  const bool dict = c == '{';
  const char close = dict ? '}' : c == '[' ? ']' : ')';
  m.take_raw();
  out += dict ? '{' : '[';
  co_await read_space(m);
  c = co_await m.peek();
  bool more = c != static_cast<uint8_t>(close);
  if (!more) m.take_raw();
  while (more) {
    if (dict) {
      co_await read_space(m);
      c = co_await m.peek();
      if (c != '"' && c != '\'') co_return false;
      std::string key;
      ok = co_await python_string(m, key);
      if (!ok) co_return false;
      out += json_string(key) + ": ";
      co_await read_space(m);
      ok = co_await read_literal(m, ":");
      if (!ok) co_return false;
    }
    ok = co_await python_value(m, out, depth + 1);
    if (!ok) co_return false;
    ok = co_await read_separator(m, close, more);
    if (!ok) co_return false;
    if (more) out += ", ";
  }
  co_return out += dict ? '}' : ']', true;
}

// name(key=value, ...)
Read python_call(Machine& m, bool bare) {
  std::string name;
  bool ok = co_await read_name(m, "(", name);
  if (!ok) co_return false;
  if (name.ends_with(".call")) name.resize(name.size() - 5);  // Llama 3 after <|python_tag|>
  if (!is_name(name) || (bare && !m.tools.has(name))) co_return false;
  m.call_begin(name, "");
  co_await read_space(m);
  int c = co_await m.peek();
  bool more = c != ')', first = true;
  if (!more) m.take_raw();
  while (more) {
    std::string key, value;
    ok = co_await read_word(m, key);
    if (!ok) co_return false;
    co_await read_space(m);
    ok = co_await read_literal(m, "=");
    if (!ok) co_return false;
    ok = co_await python_value(m, value, 0);
    if (!ok) co_return false;
    m.call_arguments((first ? "{" : ", ") + json_string(key) + ": " + value);
    first = false;
    ok = co_await read_separator(m, ')', more);
    if (!ok) co_return false;
  }
  m.call_arguments(first ? "{}" : "}");
  co_return m.call_end();
}

}  // namespace

Read body_gemma(Machine& m, const CallSyntax& s) {
  std::string name, arguments;
  co_await read_space(m);
  bool ok = co_await read_literal(m, "call:");
  if (!ok) co_return false;
  ok = co_await read_name(m, "{", name);
  if (!ok) co_return false;
  m.call_begin(std::move(name), "");
  ok = co_await gemma_members(m, arguments, 0);
  if (!ok) co_return false;
  m.call_arguments(arguments);
  if (!m.call_end()) co_return false;
  co_await read_space(m);
  ok = co_await read_literal(m, s.close);
  if (ok) m.silent();
  co_return ok;
}

Read body_python(Machine& m, const CallSyntax& s, bool bare) {
  co_await read_space(m);
  int c = co_await m.peek();
  bool ok = true;
  if (!bare && c == '{') {
    ok = co_await body_json(m, s, false);
    co_return ok;
  }
  if (c == '[') {
    m.take_raw();
    co_await read_space(m);
    c = co_await m.peek();
    if (c == '{') co_return false;
    for (bool more = true; more;) {
      ok = co_await python_call(m, bare);
      if (!ok) co_return false;
      ok = co_await read_separator(m, ']', more);
      if (!ok) co_return false;
    }
    m.silent();
  } else {
    if (bare) co_return false;
    ok = co_await python_call(m, bare);
    if (!ok) co_return false;
  }
  if (s.close.empty()) co_return true;
  co_await read_space(m);
  ok = co_await read_literal(m, s.close);
  if (ok) m.silent();
  co_return ok;
}

}  // namespace minfer::chat::answer
