// Text operations that the methods of str and the filters share. Bytes keep their origin throughout.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

inline constexpr size_t kNotFound = std::string::npos;

// The first match at or after `from`. Linear in the worst case (glibc's memmem), so no pair of strings can stall a
// render.
size_t find_from(std::string_view hay, std::string_view needle, size_t from);

// Lower case of the character at `at`, with its context (a sigma at the end of a word).
void append_lower_at(std::string& out, std::string_view s, size_t at, uint32_t code);

// Maps each character by f(out, code).
template <typename F>
Value map_chars(Interp& in, const Value& s, F&& f) {
  in.step(1 + s.as_text().size() / 8);
  Text out;
  const Text& text = s.as_text();
  text.for_each_run([&](std::string_view piece, bool markup) {
    std::string mapped;
    mapped.reserve(piece.size());
    for (size_t at = 0; at < piece.size();) {
      const Char c = decode(piece, at);
      f(mapped, c.code);
      at += c.bytes;
    }
    in.charge(mapped.size());
    out.append(mapped, markup);
  });
  return in.text(std::move(out), is_safe(s));
}

// The same for mappings that look around: f(out, offset, code).
template <typename F>
Value map_in_context(Interp& in, const Value& s, F&& f) {
  const Text& text = s.as_text();
  in.step(text.size());
  Text out;
  for (size_t at = 0; at < text.size();) {
    const Char c = decode(text.view(), at);
    std::string mapped;
    f(mapped, at, c.code);
    in.charge(mapped.size());
    out.append(mapped, text.is_markup(at));
    at += c.bytes;
  }
  return in.text(std::move(out), is_safe(s));
}

}  // namespace minfer::chat::jinja
