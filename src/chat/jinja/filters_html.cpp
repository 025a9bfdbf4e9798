// Filters that know HTML: striptags and urlize.
// Source: markupsafe's striptags, Python's html.unescape (the HTML standard's character references), Jinja's urlize.
#include <algorithm>
#include <array>
#include <set>

#include "chat/jinja/filters.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"
#include "chat/jinja/str_ops.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

struct Entity {
  std::string_view name, text;
};

// By name; those that HTML also knows without a semicolon are listed twice.
constexpr Entity kEntities[] = {
#include "chat/jinja/html_entities.inc"
};

const Entity* find_entity(std::string_view name) {
  const auto* it = std::lower_bound(std::begin(kEntities), std::end(kEntities), name,
                                    [](const Entity& e, std::string_view n) { return e.name < n; });
  return it != std::end(kEntities) && it->name == name ? it : nullptr;
}

// What the numbers 0x80 to 0x9F mean: windows-1252, where that has a character.
constexpr std::array<uint16_t, 32> kWindows1252 = {0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                                   0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,   0x017D, 0x8F,
                                                   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                                   0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

std::string numbered_character(uint32_t code) {
  std::string out;
  if (code >= 0x80 && code <= 0x9F) {
    append_utf8(out, kWindows1252[code - 0x80]);
  } else if (code == 0 || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) {
    append_utf8(out, 0xFFFD);
  } else {
    const bool control = code < 0x20 && code != '\t' && code != '\n' && code != '\f' && code != '\r';
    const bool none = (code >= 0xFDD0 && code <= 0xFDEF) || (code & 0xFFFE) == 0xFFFE;
    if (!control && !none && code != 0x7F) append_utf8(out, code);
  }
  return out;
}

// The reference that starts with the '&' at `at`: sets what it stands for and where it ends; false when it is none.
bool character_reference(std::string_view s, size_t at, std::string* text, size_t* end) {
  size_t i = at + 1;
  if (i < s.size() && s[i] == '#') {
    ++i;
    const bool hex = i < s.size() && (s[i] == 'x' || s[i] == 'X');
    if (hex) ++i;
    const size_t begin = i;
    uint32_t code = 0;
    for (; i < s.size() && (hex ? std::isxdigit(static_cast<unsigned char>(s[i])) != 0 : s[i] >= '0' && s[i] <= '9');
         ++i) {
      const uint32_t digit =
          s[i] <= '9' ? static_cast<uint32_t>(s[i] - '0') : static_cast<uint32_t>((s[i] | 0x20) - 'a') + 10;
      code = std::min<uint32_t>(code * (hex ? 16 : 10) + digit, 0x110000);
    }
    if (i == begin) return false;
    if (i < s.size() && s[i] == ';') ++i;
    *text = numbered_character(code);
    *end = i;
    return true;
  }
  size_t chars = 0;
  while (i < s.size() && chars < 32 && std::string_view("\t\n\f <&#;").find(s[i]) == std::string_view::npos) {
    i += decode(s, i).bytes;
    ++chars;
  }
  if (chars == 0) return false;
  if (i < s.size() && s[i] == ';') ++i;
  // The longest name that the text starts with.
  for (size_t stop = i; stop > at + 2; --stop) {
    if (const Entity* entity = find_entity(s.substr(at + 1, stop - at - 1))) {
      *text = std::string(entity->text);
      *end = stop;
      return true;
    }
  }
  return false;
}

Text unescaped(Interp& in, const Text& t) {
  const std::string_view s = t.view();
  Text out;
  for (size_t at = 0; at < s.size();) {
    const size_t next = std::min(s.find('&', at), s.size());
    out.append_slice(t, at, next - at);
    if (next == s.size()) break;
    std::string text;
    size_t end = next + 1;
    in.step(8);  // up to 32 names are looked up
    if (character_reference(s, next, &text, &end)) {
      out.append(text, t.is_markup(next));
    } else {
      out.append_slice(t, next, end - next);
    }
    at = end;
  }
  in.charge(out.size());
  return out;
}

}  // namespace

Value striptags(Interp& in, const Value& v, const Args& a) {
  Params("striptags", a, {});
  const Text source = to_text(in, v);
  const std::string_view s = source.view();
  in.step(s.size() / 64);
  in.charge(s.size());
  Text out;
  size_t at = 0;
  for (size_t start; (start = s.find('<', at)) != s.npos;) {
    const bool comment = s.substr(start, 4) == "<!--";
    const size_t end = comment ? find_from(s, "-->", start + 4) : s.find('>', start);
    if (end == s.npos) break;
    out.append_slice(source, at, start - at);
    at = end + (comment ? 3 : 1);
  }
  out.append_slice(source, at, s.size() - at);
  Text words;
  for (size_t i = 0; i < out.size();) {
    size_t begin = i;
    while (begin < out.size() && is_space(decode(out.view(), begin).code)) begin += decode(out.view(), begin).bytes;
    i = begin;
    while (i < out.size() && !is_space(decode(out.view(), i).code)) i += decode(out.view(), i).bytes;
    if (i == begin) break;
    if (!words.empty()) words.append(" ", true);
    words.append_slice(out, begin, i - begin);
  }
  return in.text(unescaped(in, words));
}

namespace {

bool ascii_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool hex_digit(char c) { return digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }
bool word_char(uint32_t c) { return c == '_' || is_alpha(c) || is_numeric(c); }

bool starts_with_ci(std::string_view s, std::string_view lower) {
  if (s.size() < lower.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i) {
    const char c = s[i];
    if ((ascii_alpha(c) ? static_cast<char>(c | 0x20) : c) != lower[i]) return false;
  }
  return true;
}

// (?::\d{1,5})?(?:[/?#]\S*)?$ from `at`.
bool url_rest(std::string_view s, size_t at) {
  const auto path = [&](size_t i) {
    if (i == s.size()) return true;
    return s[i] == '/' || s[i] == '?' || s[i] == '#';  // words hold no white space
  };
  if (path(at)) return true;
  if (s[at] != ':') return false;
  size_t i = at + 1;
  while (i < s.size() && digit(s[i]) && i - at <= 5) ++i;
  return i > at + 1 && path(i);
}

// The host's labels from `at`: [\w%-]+ or what a top-level name may be, between dots.
struct Labels {
  struct Label {
    size_t begin, end;
    size_t chars;
  };
  std::vector<Label> list;

  Labels(std::string_view s, size_t at) {
    for (;;) {
      size_t i = at, chars = 0;
      while (i < s.size()) {
        const Char c = decode(s, i);
        if (!word_char(c.code) && c.code != '%' && c.code != '-') break;
        i += c.bytes;
        ++chars;
      }
      if (chars == 0) return;
      list.push_back({at, i, chars});
      if (i >= s.size() || s[i] != '.') return;
      at = i + 1;
    }
  }
};

// A top-level name at `at` that the rest of the word may follow.
bool top_level(std::string_view s, size_t at) {
  size_t letters = at;
  while (letters < s.size() && ascii_alpha(s[letters])) ++letters;
  // Shorter names would leave a letter for the rest to start with, which it cannot.
  if (letters - at >= 2 && letters - at <= 63 && url_rest(s, letters)) return true;
  if (!starts_with_ci(s.substr(at), "xn--")) return false;
  size_t i = at + 4, chars = 0;
  while (i < s.size() && (word_char(decode(s, i).code) || s[i] == '%')) i += decode(s, i).bytes, ++chars;
  return chars >= 2 && chars <= 59 && url_rest(s, i);
}

bool ip_address(std::string_view s, size_t at) {
  size_t i = at;
  int parts = 0;
  for (;;) {
    const size_t begin = i;
    while (i < s.size() && digit(s[i]) && i - begin < 3) ++i;
    if (i == begin) break;
    if (++parts == 4) return url_rest(s, i);
    if (i >= s.size() || s[i] != '.') break;
    ++i;
  }
  if (at >= s.size() || s[at] != '[') return false;
  // \[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}\]
  i = at + 1;
  size_t colons = 0, run = 0;
  size_t groups = 0;  // of the second kind that the digits since the second colon need
  for (; i < s.size() && (s[i] == ':' || hex_digit(s[i])); ++i) {
    if (s[i] == ':') {
      if (colons < 2) {
        if (run > 4) return false;
      } else {
        groups += run == 0 ? 1 : (run + 3) / 4;
      }
      ++colons;
      run = 0;
    } else {
      ++run;
    }
  }
  groups += (run + 3) / 4;
  return colons >= 2 && groups <= 6 && i < s.size() && s[i] == ']' && url_rest(s, i + 1);
}

bool looks_like_url(std::string_view s) {
  const size_t scheme = starts_with_ci(s, "https://") ? 8 : starts_with_ci(s, "http://") ? 7 : 0;
  const size_t www = starts_with_ci(s, "www.") ? 4 : 0;
  for (const size_t prefix : {scheme, www}) {
    if (prefix == 0) continue;
    if (top_level(s, prefix)) return true;
    const Labels labels(s, prefix);
    for (size_t k = 1; k <= labels.list.size(); ++k) {
      const auto& before = labels.list[k - 1];
      if (before.end < s.size() && s[before.end] == '.' && top_level(s, before.end + 1)) return true;
    }
  }
  // name.name.org and the like
  const Labels labels(s, 0);
  for (size_t k = 1; k <= labels.list.size(); ++k) {
    const auto& before = labels.list[k - 1];
    if (before.chars < 2 || before.chars > 63 || before.end >= s.size() || s[before.end] != '.') break;
    for (std::string_view top : {"com", "net", "int", "edu", "gov", "org", "info", "mil"}) {
      if (starts_with_ci(s.substr(before.end + 1), top) && url_rest(s, before.end + 1 + top.size())) return true;
    }
  }
  return scheme != 0 && ip_address(s, scheme);
}

// ^\S+@\w[\w.-]*\.\w+$
bool looks_like_mail(std::string_view s) {
  for (size_t at = s.find('@', 1); at != s.npos; at = s.find('@', at + 1)) {
    size_t i = at + 1, dot = 0;
    bool ok = i < s.size() && word_char(decode(s, i).code);
    for (bool first = true; ok && i < s.size(); first = false) {
      const Char c = decode(s, i);
      if (c.code == '.' && !first) dot = i;
      ok = word_char(c.code) || c.code == '.' || c.code == '-';
      i += c.bytes;
    }
    if (!ok || dot == 0 || dot + 1 >= s.size()) continue;
    bool tail = true;
    for (i = dot + 1; i < s.size(); i += decode(s, i).bytes) tail = tail && word_char(decode(s, i).code);
    if (tail) return true;
  }
  return false;
}

class Linker {
 public:
  Linker(Interp& in, int64_t limit, std::string attributes, std::vector<std::string> schemes)
      : in_(in), limit_(limit), attributes_(std::move(attributes)), schemes_(std::move(schemes)) {}

  void word(Text& out, const Text& w) {
    const std::string_view s = w.view();
    in_.step(1 + s.size());
    size_t begin = 0, end = s.size();
    for (;;) {
      if (begin < s.size() && (s[begin] == '(' || s[begin] == '<')) {
        ++begin;
      } else if (s.substr(begin).starts_with("&lt;")) {
        begin += 4;
      } else {
        break;
      }
    }
    for (;;) {
      const std::string_view middle = s.substr(begin, end - begin);
      if (!middle.empty() && std::string_view(")>.,\n").find(middle.back()) != middle.npos) {
        --end;
      } else if (middle.ends_with("&gt;")) {
        end -= 4;
      } else {
        break;
      }
    }
    balance(s, begin, &end, "(", ")");
    balance(s, begin, &end, "<", ">");
    balance(s, begin, &end, "&lt;", "&gt;");
    out.append_slice(w, 0, begin);
    link(out, w.slice(begin, end - begin));
    out.append_slice(w, end, s.size() - end);
  }

 private:
  static size_t count(std::string_view s, std::string_view what) {
    size_t n = 0;
    for (size_t at = s.find(what); at != s.npos; at = s.find(what, at + what.size())) ++n;
    return n;
  }

  // Gives back from the tail what closes brackets that the middle opens.
  static void balance(std::string_view s, size_t begin, size_t* end, std::string_view open, std::string_view close) {
    const std::string_view middle = s.substr(begin, *end - begin);
    const size_t opened = count(middle, open);
    if (opened <= count(middle, close)) return;
    for (size_t n = std::min(opened, count(s.substr(*end), close)); n > 0; --n) {
      *end = s.find(close, *end) + close.size();
    }
  }

  void link(Text& out, const Text& middle) {
    const std::string_view s = middle.view();
    const auto anchor = [&](std::string_view scheme, const std::string& attributes, const Text& shown) {
      in_.charge(2 * s.size() + attributes.size() + 32);
      out.append("<a href=\"", true);
      out.append(scheme, true);
      out.append(middle);
      out.append("\"" + attributes + ">", true);
      out.append(shown);
      out.append("</a>", true);
    };
    if (looks_like_url(s)) {
      anchor(s.starts_with("https://") || s.starts_with("http://") ? "" : "https://", attributes_, trimmed(middle));
    } else if (s.starts_with("mailto:") && looks_like_mail(s.substr(7))) {
      anchor("", "", middle.slice(7, s.size() - 7));
    } else if (s.find('@') != s.npos && !s.starts_with("www.") && !s.starts_with("@") && s.find(':') == s.npos &&
               looks_like_mail(s)) {
      anchor("mailto:", "", middle);
    } else {
      for (const std::string& scheme : schemes_) {
        if (s != scheme && s.starts_with(scheme)) return anchor("", attributes_, middle);
      }
      out.append(middle);
    }
  }

  Text trimmed(const Text& t) const {
    const auto n = static_cast<int64_t>(count_chars(t.view()));
    if (limit_ == INT64_MAX || n <= limit_) return t;
    const int64_t keep = limit_ < 0 ? std::max<int64_t>(0, n + limit_) : limit_;  // as a slice takes it
    Text out = t.slice(0, byte_offset(t.view(), static_cast<size_t>(keep)));
    out.append("...", true);
    return out;
  }

  Interp& in_;
  const int64_t limit_;
  const std::string attributes_;
  const std::vector<std::string> schemes_;
};

bool valid_scheme(std::string_view s) {  // [\w.+-]{2,}:/{0,2}
  size_t i = 0, chars = 0;
  while (i < s.size() && (word_char(decode(s, i).code) || s[i] == '.' || s[i] == '+' || s[i] == '-')) {
    i += decode(s, i).bytes;
    ++chars;
  }
  return chars >= 2 && (s.substr(i) == ":" || s.substr(i) == ":/" || s.substr(i) == "://");
}

}  // namespace

Value urlize(Interp& in, const Value& v, const Args& a) {
  const Params p("urlize", a, {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"});
  std::set<std::string> rel = {"noopener"};
  if (p.flag(1, false)) rel.insert("nofollow");
  if (p.has(3) && truthy(p[3])) {
    if (!p[3].is_string()) raise_error("'{}' object has no attribute 'split'", type_name(p[3]));
    const Value parts = find_string_method("split")(in, p[3], {});
    for (const Value& part : parts.items()) rel.insert(part.as_string());
  }
  std::string rel_text;
  for (const std::string& part : rel) rel_text += (rel_text.empty() ? "" : " ") + part;
  std::string attributes = " rel=\"" + escape_html(in, Text(rel_text, true)).bytes() + "\"";
  if (p.has(2) && truthy(p[2])) attributes += " target=\"" + escape_html(in, to_text(in, p[2])).bytes() + "\"";
  std::vector<std::string> schemes;
  if (p.has(4) && !p[4].is_none()) {
    for (const Value& scheme : iterate(in, p[4])) {
      if (!scheme.is_string()) raise_error("expected string or bytes-like object, got '{}'", type_name(scheme));
      if (!valid_scheme(scheme.as_string())) {
        raise_error("{} is not a valid URI scheme prefix.", repr_string(scheme.as_string()));
      }
      schemes.push_back(scheme.as_string());
    }
  }
  const int64_t limit = p.has(0) && !p[0].is_none() ? p.integer(0, 0) : INT64_MAX;
  Linker linker(in, limit, std::move(attributes), std::move(schemes));

  const Text text = is_safe(v) ? v.as_text() : escape_html(in, to_text(in, v));
  const std::string_view s = text.view();
  Text out;
  for (size_t at = 0; at < s.size();) {
    const size_t begin = at;
    while (at < s.size() && !is_space(decode(s, at).code)) at += decode(s, at).bytes;
    if (at > begin) linker.word(out, text.slice(begin, at - begin));
    const size_t space = at;
    while (at < s.size() && is_space(decode(s, at).code)) at += decode(s, at).bytes;
    out.append_slice(text, space, at - space);
  }
  in.charge(out.size());
  return in.text(std::move(out));
}

}  // namespace minfer::chat::jinja
