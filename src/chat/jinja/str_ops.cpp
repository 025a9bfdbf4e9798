// Strip, replace, case, alignment and lines.
#include "chat/jinja/str_ops.h"

#include <algorithm>

#include "base/checked.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"

namespace minfer::chat::jinja {

size_t find_from(std::string_view hay, std::string_view needle, size_t from) {
  if (from > hay.size()) return kNotFound;
  const void* p = memmem(hay.data() + from, hay.size() - from, needle.data(), needle.size());
  return p == nullptr ? kNotFound : static_cast<size_t>(static_cast<const char*>(p) - hay.data());
}

namespace {

// Greek capital sigma at the end of a word becomes the final form: preceded by a cased letter, followed by none.
// (Characters that case ignores, such as apostrophes, are passed over.)
bool final_sigma(std::string_view s, size_t at) {
  const auto ignorable = [](uint32_t c) { return c == '\'' || c == 0x2019 || c == '.' || c == 0xAD; };
  bool before = false;
  for (size_t end = at; end > 0;) {
    const Char c = decode_before(s, end);
    end -= c.bytes;
    if (ignorable(c.code)) continue;
    before = is_cased(c.code);
    break;
  }
  if (!before) return false;
  for (size_t i = at + 2; i < s.size();) {
    const Char c = decode(s, i);
    i += c.bytes;
    if (ignorable(c.code)) continue;
    return !is_cased(c.code);
  }
  return true;
}

bool in_set(std::string_view chars, std::string_view s, size_t at, size_t n) {
  const std::string_view c = s.substr(at, n);
  for (size_t i = 0; i < chars.size(); i += decode(chars, i).bytes) {
    if (chars.substr(i, decode(chars, i).bytes) == c) return true;
  }
  return false;
}

bool only_case(const Value& s, bool upper) {
  bool any = false;
  const std::string& text = s.as_string();
  for (size_t at = 0; at < text.size();) {
    const Char c = decode(text, at);
    at += c.bytes;
    if (is_title(c.code) || (upper ? is_lower(c.code) : is_upper(c.code))) return false;
    any = any || (upper ? is_upper(c.code) : is_lower(c.code));
  }
  return any;
}

}  // namespace

void append_lower_at(std::string& out, std::string_view s, size_t at, uint32_t code) {
  if (code == 0x3A3) {
    out += final_sigma(s, at) ? "\xcf\x82" : "\xcf\x83";
  } else {
    append_lower(out, code);
  }
}

Value strip_text(Interp& in, const Value& s, const Value& chars, bool left, bool right) {
  refuse_undefined(chars);
  if (!chars.is_none() && !chars.is_string()) raise_error("strip arg must be None or str");
  const std::string_view text = s.as_string();
  const bool spaces = chars.is_none();
  const std::string_view set = spaces ? std::string_view() : std::string_view(chars.as_string());
  in.step((text.size() / 64) * (1 + set.size() / 4) + 1);
  const auto drop = [&](size_t at, Char c) { return spaces ? is_space(c.code) : in_set(set, text, at, c.bytes); };
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    const Char c = decode(text, begin);
    if (!drop(begin, c)) break;
    begin += c.bytes;
  }
  while (right && end > begin) {
    const Char c = decode_before(text, end);
    if (!drop(end - c.bytes, c)) break;
    end -= c.bytes;
  }
  if (begin == 0 && end == text.size()) return s;
  return in.text(s.as_text().slice(begin, end - begin), is_safe(s));
}

Value replace_text(Interp& in, const Value& s, const Text& from, const Text& to, int64_t count) {
  const Text& text = s.as_text();
  in.step(s.weight());
  uint64_t left = count < 0 ? UINT64_MAX : static_cast<uint64_t>(count);
  Text out;
  size_t at = 0;
  const auto put = [&](const Text& t, size_t begin, size_t n) {
    in.charge(n);
    out.append_slice(t, begin, n);
  };
  if (from.empty()) {  // between all characters and at both ends
    while (left > 0) {
      --left;
      in.step();
      put(to, 0, to.size());
      if (at == text.size()) break;
      const size_t n = decode(text.view(), at).bytes;
      put(text, at, n);
      at += n;
    }
  } else {
    while (left > 0) {
      const size_t found = find_from(text.view(), from.view(), at);
      if (found == kNotFound) break;
      --left;
      in.step();
      put(text, at, found - at);
      put(to, 0, to.size());
      at = found + from.size();
    }
    if (at == 0) return s;
  }
  put(text, at, text.size() - at);
  return in.text(std::move(out), is_safe(s));
}

Value upper_text(Interp& in, const Value& s) {
  return map_chars(in, s, [](std::string& out, uint32_t code) { append_upper(out, code); });
}

Value lower_text(Interp& in, const Value& s) {
  if (s.as_string().find("\xce\xa3") == kNotFound) {  // no sigma
    return map_chars(in, s, [](std::string& out, uint32_t code) { append_lower(out, code); });
  }
  return map_in_context(
      in, s, [&](std::string& out, size_t at, uint32_t code) { append_lower_at(out, s.as_string(), at, code); });
}

Value capitalized(Interp& in, const Value& s) {
  return map_in_context(in, s, [&](std::string& out, size_t at, uint32_t code) {
    if (at == 0) {
      append_title(out, code);
    } else {
      append_lower_at(out, s.as_string(), at, code);
    }
  });
}

Value justify(Interp& in, const Value& s, int64_t width, const Text& fill, char where) {
  if (count_chars(fill.view()) != 1) raise_error("The fill character must be exactly one character long");
  const int64_t n = static_cast<int64_t>(s.object<StringObject>()->n_chars);
  if (width <= n) return s;
  const int64_t pad = width - n;
  in.charge(checked_mul<uint64_t>(static_cast<uint64_t>(pad), fill.size()).value_or(UINT64_MAX));
  // str.center puts the odd one left only when the width is odd.
  const int64_t left = where == 'l' ? 0 : where == 'r' ? pad : pad / 2 + (pad & width & 1);
  Text out;
  for (int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(s.as_text());
  for (int64_t i = left; i < pad; ++i) out.append(fill);
  return in.text(std::move(out), is_safe(s));
}

std::vector<Value> split_lines(Interp& in, const Value& s, bool keep_ends) {
  const Text& text = s.as_text();
  in.step(s.weight());
  std::vector<Value> out;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const Char c = decode(text.view(), at);
    size_t next = at + c.bytes;
    const bool ends = (c.code >= 0x0A && c.code <= 0x0D) || (c.code >= 0x1C && c.code <= 0x1E) || c.code == 0x85 ||
                      c.code == 0x2028 || c.code == 0x2029;
    if (ends) {
      if (c.code == '\r' && next < text.size() && text.view()[next] == '\n') ++next;
      out.push_back(in.text(text.slice(begin, (keep_ends ? next : at) - begin), is_safe(s)));
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) out.push_back(in.text(text.slice(begin, text.size() - begin), is_safe(s)));
  return out;
}

bool has_upper_only(const Value& s) { return only_case(s, true); }
bool has_lower_only(const Value& s) { return only_case(s, false); }

}  // namespace minfer::chat::jinja
