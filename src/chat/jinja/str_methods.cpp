// The methods of str.
#include <algorithm>
#include <cstring>

#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"
#include "chat/jinja/str_ops.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

// The bytes [*begin, *end) that optional character bounds name, as slices do; false when the range is inverted.
bool char_range(Interp& in, const Value& s, const Params& p, size_t first, size_t* begin, size_t* end) {
  const auto* object = s.object<StringObject>();
  const int64_t n = static_cast<int64_t>(object->n_chars);
  const auto place = [&](size_t i, int64_t absent) {
    if (!p.has(i) || p[i].is_none()) return absent;
    const int64_t at = p.integer(i, absent);
    return at < 0 ? std::max<int64_t>(0, at + n) : at;
  };
  const int64_t from = place(first, 0), to = std::min(place(first + 1, n), n);
  if (from > to) return false;
  in.step(s.weight());
  const std::string_view text = object->text.view();
  *begin = object->ascii() ? static_cast<size_t>(from) : byte_offset(text, static_cast<size_t>(from));
  *end = object->ascii() ? static_cast<size_t>(to) : byte_offset(text, static_cast<size_t>(to));
  return true;
}

Value strip(Interp& in, const Value& s, const Args& a) {
  return strip_text(in, s, Params("strip", a, {"chars"}).get(0, Value()), true, true);
}
Value lstrip(Interp& in, const Value& s, const Args& a) {
  return strip_text(in, s, Params("lstrip", a, {"chars"}).get(0, Value()), true, false);
}
Value rstrip(Interp& in, const Value& s, const Args& a) {
  return strip_text(in, s, Params("rstrip", a, {"chars"}).get(0, Value()), false, true);
}

Value upper(Interp& in, const Value& s, const Args& a) { return Params("upper", a, {}), upper_text(in, s); }
Value lower(Interp& in, const Value& s, const Args& a) { return Params("lower", a, {}), lower_text(in, s); }
Value capitalize(Interp& in, const Value& s, const Args& a) { return Params("capitalize", a, {}), capitalized(in, s); }

Value swapcase(Interp& in, const Value& s, const Args& a) {
  Params("swapcase", a, {});
  return map_in_context(in, s, [&](std::string& out, size_t at, uint32_t code) {
    if (is_upper(code)) {
      append_lower_at(out, s.as_string(), at, code);
    } else {
      append_upper(out, code);
    }
  });
}

Value title(Interp& in, const Value& s, const Args& a) {
  Params("title", a, {});
  bool in_word = false;
  return map_in_context(in, s, [&](std::string& out, size_t at, uint32_t code) {
    if (in_word) {
      append_lower_at(out, s.as_string(), at, code);
    } else {
      append_title(out, code);
    }
    in_word = is_cased(code);
  });
}

Value replace(Interp& in, const Value& s, const Args& a) {
  const Params p("replace", a, {"old", "new", "count"}, 2);
  return replace_text(in, s, p.text(0), p.text(1), p.integer(2, -1));
}

bool affix_match(std::string_view text, const Value& affix, bool at_start) {
  return at_start ? text.starts_with(affix.as_string()) : text.ends_with(affix.as_string());
}

Value starts_or_ends(Interp& in, const Value& s, const Args& a, bool starts) {
  const char* name = starts ? "startswith" : "endswith";
  const Params p(name, a, {"prefix", "start", "end"}, 1);
  size_t begin, end;
  const bool valid = char_range(in, s, p, 1, &begin, &end);
  const auto check = [&](const Value& affix) {
    refuse_undefined(affix);
    if (!affix.is_string()) {
      raise_error("{} first arg must be str or a tuple of str, not {}", name, type_name(affix));
    }
    return valid && affix_match(std::string_view(s.as_string()).substr(begin, end - begin), affix, starts);
  };
  if (!p[0].is(Kind::kTuple)) return Value::boolean(check(p[0]));
  for (const Value& affix : p[0].items()) {
    in.step();
    if (check(affix)) return Value::boolean(true);
  }
  return Value::boolean(false);
}
Value startswith(Interp& in, const Value& s, const Args& a) { return starts_or_ends(in, s, a, true); }
Value endswith(Interp& in, const Value& s, const Args& a) { return starts_or_ends(in, s, a, false); }

// split and rsplit at white space or a separator.
Value split_any(Interp& in, const Value& s, const Args& a, bool from_right) {
  const Params p(from_right ? "rsplit" : "split", a, {"sep", "maxsplit"});
  const int64_t max = p.integer(1, -1);
  uint64_t left = max < 0 ? UINT64_MAX : static_cast<uint64_t>(max);
  const Text& text = s.as_text();
  const std::string_view t = text.view();
  in.step(s.weight());
  std::vector<Value> out;
  const auto add = [&](size_t begin, size_t end) {
    out.push_back(in.text(text.slice(begin, end - begin), is_safe(s)));
  };
  if (!p.has(0) || p[0].is_none()) {
    const auto space_at = [&](size_t at) { return is_space(decode(t, at).code); };
    if (!from_right) {
      for (size_t at = 0;;) {
        while (at < t.size() && space_at(at)) at += decode(t, at).bytes;
        if (at == t.size()) break;
        if (left == 0) {  // the rest as it is, its trailing white space too
          add(at, t.size());
          break;
        }
        --left;
        const size_t begin = at;
        while (at < t.size() && !space_at(at)) at += decode(t, at).bytes;
        add(begin, at);
      }
    } else {
      for (size_t at = t.size();;) {
        while (at > 0 && is_space(decode_before(t, at).code)) at -= decode_before(t, at).bytes;
        if (at == 0) break;
        if (left == 0) {
          add(0, at);
          break;
        }
        --left;
        const size_t end = at;
        while (at > 0 && !is_space(decode_before(t, at).code)) at -= decode_before(t, at).bytes;
        add(at, end);
      }
      std::reverse(out.begin(), out.end());
    }
    return in.list(std::move(out));
  }
  const std::string& sep = p.text(0).bytes();
  if (sep.empty()) raise_error("empty separator");
  if (!from_right) {
    size_t at = 0;
    for (; left > 0; --left) {
      const size_t found = find_from(t, sep, at);
      if (found == kNotFound) break;
      add(at, found);
      at = found + sep.size();
    }
    add(at, t.size());
  } else {
    // Matches from the right do not overlap: search a copy that is cut at each one.
    size_t end = t.size();
    for (; left > 0 && end >= sep.size(); --left) {
      size_t at = end - sep.size();
      uint64_t looked = 0;
      while (at > 0 && std::memcmp(t.data() + at, sep.data(), sep.size()) != 0) --at, ++looked;
      in.step(looked * (1 + sep.size() / 64) / 64);
      if (std::memcmp(t.data() + at, sep.data(), sep.size()) != 0) break;
      add(at + sep.size(), end);
      end = at;
    }
    add(0, end);
    std::reverse(out.begin(), out.end());
  }
  return in.list(std::move(out));
}
Value split(Interp& in, const Value& s, const Args& a) { return split_any(in, s, a, false); }
Value rsplit(Interp& in, const Value& s, const Args& a) { return split_any(in, s, a, true); }

Value splitlines(Interp& in, const Value& s, const Args& a) {
  const Params p("splitlines", a, {"keepends"});
  return in.list(split_lines(in, s, p.integer(0, 0) != 0));
}

// The last match in [begin, end), kNotFound without one. Charged as the naive search it is.
size_t find_last(Interp& in, std::string_view hay, std::string_view needle, size_t begin, size_t end) {
  if (needle.size() > end - begin) return kNotFound;
  size_t at = end - needle.size();
  in.step((at - begin) / 64 * (1 + needle.size() / 64));
  for (;; --at) {
    if (std::memcmp(hay.data() + at, needle.data(), needle.size()) == 0) return at;
    if (at == begin) return kNotFound;
  }
}

int64_t find_index(Interp& in, const Value& s, const Args& a, const char* name, bool last) {
  const Params p(name, a, {"sub", "start", "end"}, 1);
  const std::string& needle = p.text(0).bytes();
  size_t begin, end;
  if (!char_range(in, s, p, 1, &begin, &end)) return -1;
  const std::string_view text = s.as_string();
  const size_t at = last ? find_last(in, text, needle, begin, end) : find_from(text.substr(0, end), needle, begin);
  return at == kNotFound ? -1 : static_cast<int64_t>(count_chars(text.substr(0, at)));
}
Value find(Interp& in, const Value& s, const Args& a) { return Value::integer(find_index(in, s, a, "find", false)); }
Value rfind(Interp& in, const Value& s, const Args& a) { return Value::integer(find_index(in, s, a, "rfind", true)); }
Value index_any(Interp& in, const Value& s, const Args& a, const char* name, bool last) {
  const int64_t at = find_index(in, s, a, name, last);
  if (at < 0) raise_error("substring not found");
  return Value::integer(at);
}
Value index(Interp& in, const Value& s, const Args& a) { return index_any(in, s, a, "index", false); }
Value rindex(Interp& in, const Value& s, const Args& a) { return index_any(in, s, a, "rindex", true); }

Value count(Interp& in, const Value& s, const Args& a) {
  const Params p("count", a, {"sub", "start", "end"}, 1);
  const std::string& needle = p.text(0).bytes();
  size_t begin, end;
  if (!char_range(in, s, p, 1, &begin, &end)) return Value::integer(0);
  const std::string_view text = std::string_view(s.as_string()).substr(0, end);
  if (needle.empty()) return Value::integer(static_cast<int64_t>(count_chars(text.substr(begin))) + 1);
  int64_t n = 0;
  for (size_t at = find_from(text, needle, begin); at != kNotFound; at = find_from(text, needle, at + needle.size()))
    ++n;
  return Value::integer(n);
}

Value join(Interp& in, const Value& s, const Args& a) {
  const Params p("join", a, {"iterable"}, 1);
  Text out;
  size_t i = 0;
  for (const Value& item : iterate(in, p[0])) {
    if (is_safe(s)) {  // takes anything, escaped
      const Text piece = is_safe(item) ? item.as_text() : escape_html(in, to_text(in, item));
      in.charge(piece.size() + s.as_string().size());
      if (i++ > 0) out.append(s.as_text());
      out.append(piece);
      continue;
    }
    if (!item.is_string()) {
      refuse_undefined(item);
      raise_error("sequence item {}: expected str instance, {} found", i, type_name(item));
    }
    in.charge(item.as_string().size() + s.as_string().size());
    if (i++ > 0) out.append(s.as_text());
    out.append(item.as_text());
  }
  return in.text(std::move(out), is_safe(s));
}

Value partition_any(Interp& in, const Value& s, const Args& a, bool last) {
  const Params p(last ? "rpartition" : "partition", a, {"sep"}, 1);
  const Text& sep = p.text(0);
  const Text& text = s.as_text();
  if (sep.empty()) raise_error("empty separator");
  in.step(s.weight());
  const size_t at =
      last ? find_last(in, text.view(), sep.view(), 0, text.size()) : find_from(text.view(), sep.view(), 0);
  if (at == kNotFound) {
    const Value empty = in.text({}, is_safe(s));
    return last ? in.tuple({empty, empty, s}) : in.tuple({s, empty, empty});
  }
  const size_t after = at + sep.size();
  return in.tuple({in.text(text.slice(0, at), is_safe(s)), in.text(text.slice(at, sep.size()), is_safe(s)),
                   in.text(text.slice(after, text.size() - after), is_safe(s))});
}
Value partition(Interp& in, const Value& s, const Args& a) { return partition_any(in, s, a, false); }
Value rpartition(Interp& in, const Value& s, const Args& a) { return partition_any(in, s, a, true); }

Value removeprefix(Interp& in, const Value& s, const Args& a) {
  const Params p("removeprefix", a, {"prefix"}, 1);
  const size_t n = p.text(0).size();
  if (!s.as_string().starts_with(p.text(0).bytes())) return s;
  return in.text(s.as_text().slice(n, s.as_text().size() - n));
}
Value removesuffix(Interp& in, const Value& s, const Args& a) {
  const Params p("removesuffix", a, {"suffix"}, 1);
  if (!s.as_string().ends_with(p.text(0).bytes())) return s;
  return in.text(s.as_text().slice(0, s.as_text().size() - p.text(0).size()));
}

Value just(Interp& in, const Value& s, const Args& a, const char* name, char where) {
  const Params p(name, a, {"width", "fillchar"}, 1);
  static const Text kSpace(" ", true);
  return justify(in, s, p.integer(0, 0), p.has(1) ? p.text(1) : kSpace, where);
}
Value ljust(Interp& in, const Value& s, const Args& a) { return just(in, s, a, "ljust", 'l'); }
Value rjust(Interp& in, const Value& s, const Args& a) { return just(in, s, a, "rjust", 'r'); }
Value center(Interp& in, const Value& s, const Args& a) { return just(in, s, a, "center", 'c'); }

Value zfill(Interp& in, const Value& s, const Args& a) {
  const int64_t width = Params("zfill", a, {"width"}, 1).integer(0, 0);
  const Text& text = s.as_text();
  const size_t sign = !text.empty() && (text.view()[0] == '+' || text.view()[0] == '-') ? 1 : 0;
  const int64_t n = static_cast<int64_t>(s.object<StringObject>()->n_chars);
  if (width <= n) return s;
  const int64_t pad = width - n;
  in.charge(static_cast<uint64_t>(pad));
  Text out = text.slice(0, sign);
  out.append(std::string(static_cast<size_t>(pad), '0'), true);
  out.append_slice(text, sign, text.size() - sign);
  return in.text(std::move(out));
}

Value expandtabs(Interp& in, const Value& s, const Args& a) {
  const int64_t size = Params("expandtabs", a, {"tabsize"}).integer(0, 8);
  int64_t column = 0;
  return map_chars(in, s, [&](std::string& out, uint32_t code) {
    if (code == '\t') {
      const int64_t n = size > 0 ? size - column % size : 0;
      in.charge(static_cast<uint64_t>(n));
      out.append(static_cast<size_t>(n), ' ');
      column += n;
      return;
    }
    column = code == '\n' || code == '\r' ? 0 : column + 1;
    if (code >= 0xDC80 && code <= 0xDCFF) {
      out += static_cast<char>(code - 0xDC00);
    } else {
      append_utf8(out, code);
    }
  });
}

Value casefold(Interp& in, const Value& s, const Args& a) {
  Params("casefold", a, {});
  // Folding is lower case but for letters whose upper case is longer (ß folds to ss).
  return map_chars(in, s, [](std::string& out, uint32_t code) {
    std::string up;
    append_upper(up, code);
    if (code != 0x130 && count_chars(up) > 1) {
      for (size_t at = 0; at < up.size(); at += decode(up, at).bytes) append_lower(out, decode(up, at).code);
    } else if (code == 0x3C2) {
      out += "\xcf\x83";
    } else {
      append_lower(out, code);
    }
  });
}

template <bool (*property)(uint32_t)>
bool all_are(const Value& s) {
  const std::string& text = s.as_string();
  for (size_t at = 0; at < text.size();) {
    const Char c = decode(text, at);
    if (!property(c.code)) return false;
    at += c.bytes;
  }
  return !text.empty();
}

template <bool (*property)(uint32_t)>
Value is_all(Interp& in, const Value& s, const Args& a) {
  Params("is...", a, {});
  in.step(s.weight());
  return Value::boolean(all_are<property>(s));
}

bool alnum(uint32_t c) { return is_alpha(c) || is_numeric(c); }
bool ascii(uint32_t c) { return c < 0x80; }

Value isascii(Interp& in, const Value& s, const Args& a) {
  return Value::boolean(s.as_string().empty() || is_all<ascii>(in, s, a).as_bool());
}
Value isprintable(Interp& in, const Value& s, const Args& a) {
  return Value::boolean(s.as_string().empty() || is_all<is_printable>(in, s, a).as_bool());
}
Value isupper(Interp& in, const Value& s, const Args& a) {
  Params("isupper", a, {});
  in.step(s.weight());
  return Value::boolean(has_upper_only(s));
}
Value islower(Interp& in, const Value& s, const Args& a) {
  Params("islower", a, {});
  in.step(s.weight());
  return Value::boolean(has_lower_only(s));
}
Value istitle(Interp& in, const Value& s, const Args& a) {
  Params("istitle", a, {});
  in.step(s.weight());
  bool in_word = false, any = false;
  const std::string& text = s.as_string();
  for (size_t at = 0; at < text.size();) {
    const Char c = decode(text, at);
    at += c.bytes;
    const bool upper = is_upper(c.code) || is_title(c.code);
    if ((upper && in_word) || (is_lower(c.code) && !in_word)) return Value::boolean(false);
    in_word = is_cased(c.code);
    any = any || in_word;
  }
  return Value::boolean(any);
}
Value isidentifier(Interp& in, const Value& s, const Args& a) {
  Params("isidentifier", a, {});
  in.step(s.weight());
  const std::string& text = s.as_string();
  return Value::boolean(!text.empty() && is_identifier_start(decode(text, 0).code) && all_are<is_identifier_part>(s));
}

Value format(Interp& in, const Value& s, const Args& a) { return brace_format(in, s, a); }
Value format_map(Interp& in, const Value& s, const Args& a) {
  const Params p("format_map", a, {"mapping"}, 1);
  if (!p[0].is_dict()) raise_error("format_map() argument must be a mapping, not {}", type_name(p[0]));
  Args named;
  for (const auto& [key, value] : p[0].as_dict().entries()) {
    if (key.is_string()) named.named.emplace_back(key.as_string(), value);
  }
  return brace_format(in, s, named);
}

constexpr Named<MethodFn> kMethods[] = {
    {"capitalize", capitalize},
    {"casefold", casefold},
    {"center", center},
    {"count", count},
    {"endswith", endswith},
    {"expandtabs", expandtabs},
    {"find", find},
    {"format", format},
    {"format_map", format_map},
    {"index", index},
    {"isalnum", is_all<alnum>},
    {"isalpha", is_all<is_alpha>},
    {"isascii", isascii},
    {"isdecimal", is_all<is_decimal>},
    {"isdigit", is_all<is_digit>},
    {"isidentifier", isidentifier},
    {"islower", islower},
    {"isnumeric", is_all<is_numeric>},
    {"isprintable", isprintable},
    {"isspace", is_all<is_space>},
    {"istitle", istitle},
    {"isupper", isupper},
    {"join", join},
    {"ljust", ljust},
    {"lower", lower},
    {"lstrip", lstrip},
    {"partition", partition},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace},
    {"rfind", rfind},
    {"rindex", rindex},
    {"rjust", rjust},
    {"rpartition", rpartition},
    {"rsplit", rsplit},
    {"rstrip", rstrip},
    {"split", split},
    {"splitlines", splitlines},
    {"startswith", startswith},
    {"strip", strip},
    {"swapcase", swapcase},
    {"title", title},
    {"upper", upper},
    {"zfill", zfill},
};

}  // namespace

MethodFn find_string_method(std::string_view name) {
  for (const auto& m : kMethods) {
    if (m.name == name) return m.function;
  }
  return nullptr;
}

}  // namespace minfer::chat::jinja
