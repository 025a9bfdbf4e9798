// The readers that all forms of calls are made of.
#include "chat/answer/bodies.h"
#include "chat/json.h"

namespace minfer::chat::answer {

namespace {

bool is_name_byte(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':' || c == '/';
}

}  // namespace

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  for (const char c : name) {
    if (static_cast<uint8_t>(c) < 0x20) return false;
  }
  return true;
}

Read read_space(Machine& m) {
  for (;;) {
    const int c = co_await m.peek();
    if (!is_space(c)) co_return true;
    m.take_raw();
  }
}

Read read_literal(Machine& m, std::string_view literal) {
  for (const char want : literal) {
    const int c = co_await m.peek();
    if (c != static_cast<uint8_t>(want)) co_return false;
    m.take_raw();
  }
  co_return true;
}

Read read_optional(Machine& m, std::string_view literal) {
  if (literal.empty()) co_return true;
  const int c = co_await m.peek();
  if (c != static_cast<uint8_t>(literal[0])) co_return true;
  const bool ok = co_await read_literal(m, literal);
  co_return ok;
}

Read read_one_of(Machine& m, std::string_view a, std::string_view b, int& which) {
  bool in_a = true, in_b = true;
  for (size_t i = 0;; ++i) {
    if (in_a && i == a.size()) co_return which = 0, true;
    if (in_b && i == b.size()) co_return which = 1, true;
    const int c = co_await m.peek();
    in_a = in_a && c == static_cast<uint8_t>(a[i]);
    in_b = in_b && c == static_cast<uint8_t>(b[i]);
    if (!in_a && !in_b) co_return false;
    m.take_raw();
  }
}

Read read_until(Machine& m, std::string_view end, std::string& out) {
  for (;;) {
    const int c = co_await m.peek();
    if (c == kEnd) co_return false;
    m.take_raw();
    out += static_cast<char>(c);
    if (out.ends_with(end)) {
      out.resize(out.size() - end.size());
      co_return true;
    }
  }
}

Read read_name(Machine& m, std::string_view end, std::string& out) {
  for (;;) {
    const int c = co_await m.peek();
    if (c == static_cast<uint8_t>(end[0])) break;
    if (!is_name_byte(c) || out.size() >= kMaxNameBytes) co_return false;
    m.take_raw();
    out += static_cast<char>(c);
  }
  const bool ok = co_await read_literal(m, end);
  co_return ok && !out.empty();
}

Read read_word(Machine& m, std::string& out) {
  for (;;) {
    const int c = co_await m.peek();
    if (!is_name_byte(c)) co_return !out.empty();
    if (out.size() >= kMaxNameBytes) co_return false;
    m.take_raw();
    out += static_cast<char>(c);
  }
}

Read read_json(Machine& m, std::string& out, bool arguments) {
  JsonScan scan;
  const size_t begin = out.size();
  for (;;) {
    const int c = co_await m.peek();
    if (c == kEnd) co_return scan.started() && scan.whole_at_end();
    const JsonScan::Step step = scan.step(static_cast<uint8_t>(c));
    if (step == JsonScan::Step::kBad) co_return false;
    if (step == JsonScan::Step::kDoneBefore) co_return true;
    m.take_raw();
    if (out.size() > begin || !is_space(c)) {
      out += static_cast<char>(c);
      if (arguments) m.call_arguments(std::string_view(out).substr(out.size() - 1));
    }
    if (step == JsonScan::Step::kDone) co_return true;
  }
}

bool decode_json_string(std::string_view literal, std::string& out) {
  const auto value = parse_json(literal);
  if (!value.ok() || !value->is_string()) return false;
  out = value->as_string();
  return true;
}

Read read_call_arguments(Machine& m, std::string name, std::string id) {
  if (!is_name(name)) co_return false;
  co_await read_space(m);
  const int c = co_await m.peek();
  std::string json;
  if (c == '{') {
    m.call_begin(std::move(name), std::move(id));
    const bool ok = co_await read_json(m, json, true);
    co_return ok;
  }
  if (c != '"' && c != 'n') co_return false;
  const bool ok = co_await read_json(m, json);
  if (!ok) co_return false;
  std::string inner = "{}";
  if (c == '"' && !decode_json_string(json, inner)) co_return false;
  m.call_begin(std::move(name), std::move(id));
  m.call_arguments(inner);
  co_return true;
}

}  // namespace minfer::chat::answer
