// Filters on text and numbers.
#include <cmath>

#include "base/checked.h"
#include "chat/jinja/filters.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

// A str as it is (safe ones too), anything else as str() prints it.
Value soft_str(Interp& in, const Value& v) { return v.is_string() ? v : in.text(to_text(in, v)); }

Value upper(Interp& in, const Value& v, const Args& a) {
  return Params("upper", a, {}), upper_text(in, soft_str(in, v));
}
Value lower(Interp& in, const Value& v, const Args& a) {
  return Params("lower", a, {}), lower_text(in, soft_str(in, v));
}
Value capitalize(Interp& in, const Value& v, const Args& a) {
  return Params("capitalize", a, {}), capitalized(in, soft_str(in, v));
}

// Words start after '-', white space, brackets and '<'; each is one capital and the rest in lower case.
Value title(Interp& in, const Value& v, const Args& a) {
  Params("title", a, {});
  const Value s = soft_str(in, v);
  const Text& text = s.as_text();
  in.step(s.weight());
  const auto separator = [](uint32_t c) {
    return c == '-' || is_space(c) || c == '(' || c == '{' || c == '[' || c == '<';
  };
  Text out;
  for (size_t at = 0; at < text.size();) {
    const Char first = decode(text.view(), at);
    std::string capital;
    append_upper(capital, first.code);
    out.append(capital, text.is_markup(at));
    at += first.bytes;
    if (separator(first.code)) continue;
    const size_t begin = at;
    while (at < text.size() && !separator(decode(text.view(), at).code)) at += decode(text.view(), at).bytes;
    if (at > begin) out.append(lower_text(in, in.text(text.slice(begin, at - begin))).as_text());
  }
  return in.text(std::move(out));
}

Value trim(Interp& in, const Value& v, const Args& a) {
  const Params p("trim", a, {"chars"});
  return strip_text(in, soft_str(in, v), p.get(0, Value()), true, true);
}

Value replace(Interp& in, const Value& v, const Args& a) {
  const Params p("replace", a, {"old", "new", "count"}, 2);
  const int64_t count = p.has(2) && !p[2].is_none() ? p.integer(2, -1) : -1;
  return replace_text(in, in.text(to_text(in, v)), to_text(in, p[0]), to_text(in, p[1]), count);
}

Value string(Interp& in, const Value& v, const Args& a) { return Params("string", a, {}), soft_str(in, v); }

Value safe(Interp& in, const Value& v, const Args& a) { return Params("safe", a, {}), in.text(to_text(in, v), true); }

Value escape(Interp& in, const Value& v, const Args& a) {
  Params("escape", a, {});
  return is_safe(v) ? v : in.text(escape_html(in, to_text(in, v)), true);
}

Value forceescape(Interp& in, const Value& v, const Args& a) {
  Params("forceescape", a, {});
  return in.text(escape_html(in, to_text(in, v)), true);
}

Value center(Interp& in, const Value& v, const Args& a) {
  const Params p("center", a, {"width"});
  return justify(in, soft_str(in, v), p.integer(0, 80), Text(" ", true), 'c');
}

Value format(Interp& in, const Value& v, const Args& a) {
  if (!a.positional.empty() && !a.named.empty()) {
    raise_error("can't handle positional and keyword arguments at the same time");
  }
  if (a.named.empty()) return percent_format(in, soft_str(in, v), in.tuple(a.positional));
  Dict named;
  for (const auto& [name, value] : a.named) named.set(Value::string(name, true), value);
  return percent_format(in, soft_str(in, v), in.dict(std::move(named)));
}

Value indent(Interp& in, const Value& v, const Args& a) {
  const Params p("indent", a, {"width", "first", "blank"});
  const bool first = p.flag(1, false), blank = p.flag(2, false);
  Text prefix;
  if (p.has(0) && p[0].is_string()) {
    prefix = p[0].as_text();
  } else {
    const int64_t width = p.integer(0, 4);
    in.charge(static_cast<uint64_t>(std::max<int64_t>(width, 0)));
    prefix.append(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '), true);
  }
  if (!v.is_string()) {
    refuse_undefined(v);
    if (v.is(Kind::kList)) raise_error("'list' object has no attribute 'splitlines'");
    if (v.is(Kind::kTuple)) raise_error("can only concatenate tuple (not \"str\") to tuple");
    raise_error("unsupported operand type(s) for +=: '{}' and 'str'", type_name(v));
  }
  Text whole = v.as_text();
  whole.append("\n", true);  // so that a last empty line counts
  const std::vector<Value> lines = split_lines(in, in.text(std::move(whole)), false);
  Text out;
  if (first) out.append(prefix);
  for (size_t i = 0; i < lines.size(); ++i) {
    in.charge(prefix.size() + lines[i].as_string().size() + 1);
    if (i > 0) {
      out.append("\n", true);
      if (blank || !lines[i].as_string().empty()) out.append(prefix);
    }
    out.append(lines[i].as_text());
  }
  return in.text(std::move(out));
}

Value truncate(Interp& in, const Value& v, const Args& a) {
  const Params p("truncate", a, {"length", "killwords", "end", "leeway"});
  const int64_t limit = p.integer(0, 255);
  const int64_t leeway = p.has(3) && !p[3].is_none() ? p.integer(3, 5) : 5;
  const int64_t end_chars = p.has(2) ? static_cast<int64_t>(jinja::length(in, p[2])) : 3;
  if (limit < end_chars) raise_error("expected length >= {}, got {}", end_chars, limit);
  if (leeway < 0) raise_error("expected leeway >= 0, got {}", leeway);
  const int64_t n = static_cast<int64_t>(jinja::length(in, v));
  const auto allowed = checked_add(limit, leeway);
  if (!allowed || n <= *allowed) return v;  // whatever it is
  if (!v.is_string()) raise_error("can only concatenate {} (not \"str\") to {}", type_name(v), type_name(v));
  const Text end = p.has(2) ? p.text(2) : Text("...", true);
  in.step(v.weight());
  Text out = v.as_text().slice(0, byte_offset(v.as_string(), static_cast<size_t>(limit - end_chars)));
  if (!p.flag(1, false)) {
    const size_t space = out.bytes().rfind(' ');
    if (space != std::string::npos) out = out.slice(0, space);
  }
  out.append(end);
  return in.text(std::move(out));
}

Value wordcount(Interp& in, const Value& v, const Args& a) {
  Params("wordcount", a, {});
  const Value s = soft_str(in, v);
  in.step(s.weight());
  int64_t n = 0;
  bool inside = false;
  const std::string& text = s.as_string();
  for (size_t at = 0; at < text.size();) {
    const Char c = decode(text, at);
    at += c.bytes;
    const bool word = c.code == '_' || is_alpha(c.code) || is_numeric(c.code);
    n += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::integer(n);
}

void append_quoted(Interp& in, Text& out, const Text& text, bool query) {
  text.for_each_run([&](std::string_view piece, bool markup) {
    std::string quoted;
    for (char c : piece) {
      const auto u = static_cast<unsigned char>(c);
      if (std::isalnum(u) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query)) {
        quoted += c;
      } else if (c == ' ' && query) {
        quoted += '+';
      } else {
        quoted += fmt::format("%{:02X}", u);
      }
    }
    in.charge(quoted.size());
    out.append(quoted, markup);
  });
}

Value urlencode(Interp& in, const Value& v, const Args& a) {
  Params("urlencode", a, {});
  Text out;
  if (v.is_string() || !iterable(v)) {
    append_quoted(in, out, to_text(in, v), false);
    return in.text(std::move(out));
  }
  bool first = true;
  const auto pair = [&](const Value& key, const Value& value) {
    if (!first) out.append("&", true);
    first = false;
    append_quoted(in, out, to_text(in, key), true);
    out.append("=", true);
    append_quoted(in, out, to_text(in, value), true);
  };
  if (v.is_dict()) {
    for (const auto& [key, value] : v.as_dict().entries()) pair(key, value);
  } else {
    for (const Value& item : iterate(in, v)) {
      if (!iterable(item)) raise_error("cannot unpack non-iterable {} object", type_name(item));
      const std::vector<Value> parts = iterate(in, item);
      if (parts.size() > 2) raise_error("too many values to unpack (expected 2)");
      if (parts.size() < 2) raise_error("not enough values to unpack (expected 2, got {})", parts.size());
      pair(parts[0], parts[1]);
    }
  }
  return in.text(std::move(out));
}

Value xmlattr(Interp& in, const Value& v, const Args& a) {
  const Params p("xmlattr", a, {"autospace"});
  if (!v.is_dict()) raise_error("'{}' object has no attribute 'items'", type_name(v));
  Text out;
  for (const auto& [key, value] : v.as_dict().entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    if (!key.is_string()) raise_error("expected string or bytes-like object, got '{}'", type_name(key));
    const Text name = to_text(in, key);
    if (name.bytes().find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      raise_error("Invalid character in attribute name: {}", repr_string(name.bytes()));
    }
    if (!out.empty() || p.flag(0, true)) out.append(" ", true);
    out.append(escape_html(in, name));
    out.append("=\"", true);
    out.append(is_safe(value) ? value.as_text() : escape_html(in, to_text(in, value)));
    out.append("\"", true);
  }
  return in.text(std::move(out));
}

Value filesizeformat(Interp& in, const Value& v, const Args& a) {
  const Params p("filesizeformat", a, {"binary"});
  const bool binary = p.flag(0, false);
  std::optional<double> bytes;
  if (is_number(v)) bytes = float_of(v);
  if (v.is_string()) bytes = parse_float(v.as_string());
  if (!bytes) raise_error("could not convert to float: {}", type_name(v));
  const double base = binary ? 1024 : 1000;
  if (*bytes == 1) return in.str("1 Byte");
  if (*bytes == -HUGE_VAL) raise_error("cannot convert float infinity to integer");
  if (*bytes < base) return in.str(fmt::format("{:.0f} Bytes", std::trunc(*bytes) + 0.0));
  const char prefixes[] = "kMGTPEZY";
  double unit = base * base;
  int i = 0;
  while (i < 7 && !(*bytes < unit)) {
    unit *= base;
    ++i;
  }
  const char prefix = binary && i == 0 ? 'K' : prefixes[i];
  return in.str(fmt::format("{:.1f} {}{}", base * *bytes / unit, prefix, binary ? "iB" : "B"));
}

Value to_int(Interp& in, const Value& v, const Args& a) {
  const Params p("int", a, {"default", "base"});
  const Value fallback = p.get(0, Value::integer(0));
  const auto truncated = [&](double d) {
    if (std::isinf(d) && !v.is_string()) raise_error("cannot convert float infinity to integer");
    if (!std::isfinite(d)) return fallback;
    return integer(in, BigInt::of(d));
  };
  if (is_int(v)) return Value::integer(int_of(v));
  if (v.is(Kind::kBigInt)) return v;
  if (v.is(Kind::kFloat)) return truncated(v.as_float());
  refuse_undefined(v);
  if (!v.is_string()) return fallback;
  in.step(v.weight());
  if (auto i = parse_int(in, v.as_string(), p.integer(1, 10))) return *i;
  if (auto d = parse_float(v.as_string())) return truncated(*d);
  return fallback;
}

Value to_float(Interp&, const Value& v, const Args& a) {
  const Params p("float", a, {"default"});
  const Value fallback = p.get(0, Value::real(0));
  if (is_number(v)) return Value::real(float_of(v));
  refuse_undefined(v);
  if (v.is_string() || v.is(Kind::kBigInt)) {
    if (auto d = parse_float(v.as_string())) return Value::real(*d);
  }
  return fallback;
}

Value abs(Interp& in, const Value& v, const Args& a) {
  Params("abs", a, {});
  return absolute(in, v);
}

Value round(Interp& in, const Value& v, const Args& a) {
  const Params p("round", a, {"precision", "method"});
  const int64_t precision = p.integer(0, 0);
  const std::string method = p.has(1) ? p.text(1).bytes() : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    raise_error("method must be common, ceil or floor");
  }
  if (!is_number(v)) raise_error("type {} doesn't define __round__ method", type_name(v));
  if (method == "common") return round_number(in, v, precision, true);
  if (is_integral(v) && precision >= 0) return Value::real(float_of(v));
  const double unit = std::pow(10.0, static_cast<double>(precision));
  if (unit == 0) raise_error("float division by zero");
  const double scaled = float_of(v) * unit;
  if (!std::isfinite(scaled)) raise_error("cannot convert float infinity to integer");
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit + 0.0);  // an int has no -0
}

// Hugging Face's tojson: json.dumps(x, ensure_ascii, indent, separators, sort_keys), with no HTML escapes.
Value tojson(Interp& in, const Value& v, const Args& a) {
  const Params p("tojson", a, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = p.flag(0, false);
  if (p.has(1) && !p[1].is_none()) {
    style.pretty = true;
    style.item_separator.assign(1, ',');
    if (p[1].is_string()) {
      style.indent = p[1].as_string();
    } else {
      const int64_t width = std::max<int64_t>(0, p.integer(1, 0));
      in.charge(static_cast<uint64_t>(width));
      style.indent = std::string(static_cast<size_t>(width), ' ');
    }
  }
  if (p.has(2) && !p[2].is_none()) {
    const std::vector<Value> pair = iterate(in, p[2]);
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      raise_error("separators must be a pair of strings");
    }
    style.item_separator = pair[0].as_string();
    style.key_separator = pair[1].as_string();
  }
  style.sort_keys = p.flag(3, false);
  return in.text(to_json(in, v, style));
}

constexpr Named<FilterFn> kFilters[] = {
    {"abs", abs},           {"capitalize", capitalize},
    {"center", center},     {"e", escape},
    {"escape", escape},     {"filesizeformat", filesizeformat},
    {"float", to_float},    {"forceescape", forceescape},
    {"format", format},     {"indent", indent},
    {"int", to_int},        {"lower", lower},
    {"pprint", pprint},     {"replace", replace},
    {"round", round},       {"safe", safe},
    {"string", string},     {"striptags", striptags},
    {"title", title},       {"tojson", tojson},
    {"trim", trim},         {"truncate", truncate},
    {"upper", upper},       {"urlencode", urlencode},
    {"urlize", urlize},     {"wordcount", wordcount},
    {"wordwrap", wordwrap}, {"xmlattr", xmlattr},
};

}  // namespace

std::span<const Named<FilterFn>> text_filters() { return kFilters; }

}  // namespace minfer::chat::jinja
