// str(), repr() and json.dumps().
#include "chat/jinja/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat/jinja/interp_scope.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific);
  const std::string_view s(buffer, static_cast<size_t>(end - buffer));  // [-]d[.ddd]e[+-]dd
  const size_t e = s.find('e');
  int exponent = 0;
  const char* digits_of_exponent = s.data() + e + 1 + (s[e + 1] == '+' ? 1 : 0);
  std::from_chars(digits_of_exponent, s.data() + s.size(), exponent);
  const bool negative = s[0] == '-';
  std::string digits;
  for (char c : s.substr(negative ? 1 : 0, e - (negative ? 1 : 0))) {
    if (c != '.') digits += c;
  }
  std::string out = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {  // Python switches to an exponent here
    out += digits[0];
    if (digits.size() > 1) out.append(".").append(digits, 1);
    out += exponent < 0 ? "e-" : "e+";
    const std::string n = std::to_string(std::abs(exponent));
    if (n.size() < 2) out += '0';
    return out + n;
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

namespace {

// Writes pieces and pays for them.
class Writer {
 public:
  Writer(Interp& in, Text& out) : in_(in), out_(out) {}
  void put(std::string_view s, bool markup = true) {
    in_.charge(s.size());
    out_.append(s, markup);
  }

 private:
  Interp& in_;
  Text& out_;
};

void escape_repr(std::string& out, std::string_view s, char quote) {
  for (size_t at = 0; at < s.size();) {
    const Char c = decode(s, at);
    if (c.code == static_cast<unsigned char>(quote) || c.code == '\\') {
      out += '\\';
      out += static_cast<char>(c.code);
    } else if (c.code == '\n') {
      out += "\\n";
    } else if (c.code == '\r') {
      out += "\\r";
    } else if (c.code == '\t') {
      out += "\\t";
    } else if (c.code < 0x20 || c.code == 0x7F) {
      out += fmt::format("\\x{:02x}", c.code);
    } else if (c.code < 0x7F || is_printable(c.code)) {
      out += s.substr(at, c.bytes);
    } else if (c.code <= 0xFF) {
      out += fmt::format("\\x{:02x}", c.code);
    } else if (c.code <= 0xFFFF) {
      out += fmt::format("\\u{:04x}", c.code);
    } else {
      out += fmt::format("\\U{:08x}", c.code);
    }
    at += c.bytes;
  }
}

char quote_for(std::string_view s) { return s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\''; }

void put_items(Interp& in, Text& out, const std::vector<Value>& items, std::string_view open, std::string_view close) {
  Writer w(in, out);
  w.put(open);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) w.put(", ");
    append_repr(in, out, items[i]);
  }
  w.put(close);
}

void put_entries(Interp& in, Text& out, const Dict& dict) {
  Writer w(in, out);
  w.put("{");
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) w.put(", ");
    first = false;
    append_repr(in, out, key);
    w.put(": ");
    append_repr(in, out, value);
  }
  w.put("}");
}

}  // namespace

std::string repr_string(std::string_view s) {
  const char quote = quote_for(s);
  std::string out(1, quote);
  escape_repr(out, s, quote);
  return out + quote;
}

void append_repr(Interp& in, Text& out, const Value& v) {
  const Interp::Level level(in);
  in.step();
  Writer w(in, out);
  switch (v.kind()) {
    case Kind::kUndefined: return w.put("Undefined");
    case Kind::kNone: return w.put("None");
    case Kind::kBool: return w.put(v.as_bool() ? "True" : "False");
    case Kind::kInt: return w.put(std::to_string(v.as_int()));
    case Kind::kBigInt: return w.put(v.as_string());
    case Kind::kFloat: return w.put(float_repr(v.as_float()));
    case Kind::kString: {
      const char quote = quote_for(v.as_string());
      const std::string_view q(&quote, 1);
      if (is_safe(v)) w.put("Markup(");
      w.put(q);
      v.as_text().for_each_run([&](std::string_view piece, bool markup) {
        std::string escaped;
        escape_repr(escaped, piece, quote);
        w.put(escaped, markup);
      });
      w.put(q);
      if (is_safe(v)) w.put(")");
      return;
    }
    case Kind::kList: {
      const auto* list = v.object<ListObject>();
      if (!list->is_range) return put_items(in, out, list->items, "[", "]");
      const RangeBounds& r = list->range;
      return w.put(r.step == 1 ? fmt::format("range({}, {})", r.start, r.stop)
                               : fmt::format("range({}, {}, {})", r.start, r.stop, r.step));
    }
    case Kind::kTuple: return put_items(in, out, v.items(), "(", v.items().size() == 1 ? ",)" : ")");
    case Kind::kDict: return put_entries(in, out, v.as_dict());
    case Kind::kIterator: {
      const auto* it = v.object<IteratorObject>();
      if (!it->view) return w.put(fmt::format("<{} object>", it->type_name));
      w.put(it->type_name);
      return put_items(in, out, it->items, "([", "])");
    }
    case Kind::kNamespace: {
      auto* ns = v.object<NamespaceObject>();
      if (ns->printing) return w.put("<Namespace {...}>");
      const Restore<bool> printing(ns->printing, true);
      w.put("<Namespace ");
      put_entries(in, out, ns->attributes);
      return w.put(">");
    }
    case Kind::kCallable: return w.put(v.object<CallableObject>()->repr(in));
  }
}

Text to_text(Interp& in, const Value& v) {
  Text out;
  if (v.is_string()) {
    out = v.as_text();
  } else if (!v.is_undefined()) {
    append_repr(in, out, v);
  }
  return out;
}

Text escape_html(Interp& in, const Text& t) {
  Text out;
  Writer w(in, out);
  t.for_each_run([&](std::string_view piece, bool markup) {
    std::string escaped;
    for (char c : piece) {
      switch (c) {
        case '&': escaped += "&amp;"; break;
        case '<': escaped += "&lt;"; break;
        case '>': escaped += "&gt;"; break;
        case '\'': escaped += "&#39;"; break;
        case '"': escaped += "&#34;"; break;
        default: escaped += c;
      }
    }
    w.put(escaped, markup);
  });
  return out;
}

namespace {

class JsonWriter {
 public:
  JsonWriter(Interp& in, Text& out, const JsonStyle& style) : in_(in), w_(in, out), style_(style) {}

  void value(const Value& v, int depth) {
    const Interp::Level level(in_);
    in_.step();
    switch (v.kind()) {
      case Kind::kNone: return w_.put("null");
      case Kind::kBool: return w_.put(v.as_bool() ? "true" : "false");
      case Kind::kInt: return w_.put(std::to_string(v.as_int()));
      case Kind::kBigInt: return w_.put(v.as_string());
      case Kind::kFloat: return w_.put(number(v.as_float()));
      case Kind::kString: return string(v.as_text());
      case Kind::kList:
        if (v.object<ListObject>()->is_range) break;
        [[fallthrough]];
      case Kind::kTuple: return array(v.items(), depth);
      case Kind::kDict: return object(v.as_dict(), depth);
      default: break;
    }
    raise_error("Object of type {} is not JSON serializable", type_name(v));
  }

 private:
  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return float_repr(d);
  }

  void string(const Text& text) {
    w_.put("\"");
    text.for_each_run([&](std::string_view piece, bool markup) { w_.put(escaped(piece), markup); });
    w_.put("\"");
  }

  std::string escaped(std::string_view s) const {
    std::string out;
    out.reserve(s.size());
    for (size_t at = 0; at < s.size();) {
      const Char c = decode(s, at);
      switch (c.code) {
        case '"': out += "\\\""; break;
        case '\\': out += "\\\\"; break;
        case '\n': out += "\\n"; break;
        case '\r': out += "\\r"; break;
        case '\t': out += "\\t"; break;
        case '\f': out += "\\f"; break;
        case '\b': out += "\\b"; break;
        default:
          if (c.code < 0x20) {
            out += fmt::format("\\u{:04x}", c.code);
          } else if (c.code < 0x7F || !style_.ensure_ascii) {
            out += s.substr(at, c.bytes);
          } else if (c.code == 0x7F) {
            out += '\x7f';
          } else if (c.code <= 0xFFFF) {
            out += fmt::format("\\u{:04x}", c.code);
          } else {
            const uint32_t v = c.code - 0x10000;
            out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (v >> 10), 0xDC00 + (v & 0x3FF));
          }
      }
      at += c.bytes;
    }
    return out;
  }

  void new_line(int depth) {
    w_.put("\n");
    for (int i = 0; i < depth; ++i) w_.put(style_.indent);
  }

  void array(const std::vector<Value>& items, int depth) {
    if (items.empty()) return w_.put("[]");
    w_.put("[");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) w_.put(style_.item_separator);
      if (style_.pretty) new_line(depth + 1);
      value(items[i], depth + 1);
    }
    if (style_.pretty) new_line(depth);
    w_.put("]");
  }

  void object(const Dict& dict, int depth) {
    if (dict.size() == 0) return w_.put("{}");
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto* a, const auto* b) { return order(in_, "<", a->first, b->first) == -1; });
    }
    w_.put("{");
    bool first = true;
    for (const Dict::Entry* entry : entries) {
      if (!first) w_.put(style_.item_separator);
      first = false;
      if (style_.pretty) new_line(depth + 1);
      key(entry->first);
      w_.put(style_.key_separator);
      value(entry->second, depth + 1);
    }
    if (style_.pretty) new_line(depth);
    w_.put("}");
  }

  void key(const Value& k) {
    switch (k.kind()) {
      case Kind::kString: return string(k.as_text());
      case Kind::kNone: return w_.put("\"null\"");
      case Kind::kBool: return w_.put(k.as_bool() ? "\"true\"" : "\"false\"");
      case Kind::kInt: return w_.put(fmt::format("\"{}\"", k.as_int()));
      case Kind::kBigInt: return w_.put(fmt::format("\"{}\"", k.as_string()));
      case Kind::kFloat: return w_.put(fmt::format("\"{}\"", number(k.as_float())));
      default: raise_error("keys must be str, int, float, bool or None, not {}", type_name(k));
    }
  }

  Interp& in_;
  Writer w_;
  const JsonStyle& style_;
};

}  // namespace

Text to_json(Interp& in, const Value& v, const JsonStyle& style) {
  Text out;
  JsonWriter(in, out, style).value(v, 0);
  if (!out.all_markup()) out.mark_all_data();
  return out;
}

}  // namespace minfer::chat::jinja
