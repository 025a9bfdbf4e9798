// "...".format(...).
// Source: Python 3, format string syntax and format specification mini-language.
#include <cmath>

#include "chat/jinja/builtins.h"
#include "chat/jinja/format_field.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

class BraceFormatter {
 public:
  BraceFormatter(Interp& in, const Args& args) : in_(in), args_(args) {}

  Text run(const Text& format, int depth) {
    if (depth > 2) raise_error("Max string recursion exceeded");
    Text out;
    const std::string_view f = format.view();
    for (size_t at = 0; at < f.size();) {
      const size_t brace = std::min(f.find_first_of("{}", at), f.size());
      in_.charge(brace - at);
      out.append_slice(format, at, brace - at);
      if (brace == f.size()) break;
      at = brace + 1;
      if (at < f.size() && f[at] == f[brace]) {
        out.append_slice(format, brace, 1);
        ++at;
        continue;
      }
      if (f[brace] == '}') raise_error("Single '}}' encountered in format string");
      int open = 1;
      size_t end = at;
      for (; end < f.size(); ++end) {
        open += f[end] == '{' ? 1 : f[end] == '}' ? -1 : 0;
        if (open == 0) break;
      }
      if (open != 0 && at >= f.size()) raise_error("Single '{{' encountered in format string");
      if (open != 0) raise_error("expected '}}' before end of string");
      field(out, format.slice(at, end - at), depth);
      at = end + 1;
    }
    return out;
  }

 private:
  void field(Text& out, const Text& text, int depth) {
    in_.step();
    const std::string_view f = text.view();
    size_t name_end = 0;
    for (int brackets = 0; name_end < f.size(); ++name_end) {
      const char c = f[name_end];
      if (c == '[') ++brackets;
      if (c == ']') --brackets;
      if (brackets <= 0 && (c == '!' || c == ':')) break;
    }
    Value v = select(f.substr(0, name_end));
    char conversion = 0;
    size_t at = name_end;
    if (at < f.size() && f[at] == '!') {
      if (at + 1 >= f.size()) raise_error("end of string while looking for conversion specifier");
      conversion = f[at + 1];
      at += 2;
      if (at < f.size() && f[at] != ':') raise_error("expected ':' after conversion specifier");
    }
    Text spec;
    if (at < f.size()) spec = run(text.slice(at + 1, f.size() - at - 1), depth + 1);
    if (conversion == 'r' || conversion == 'a') {
      Text repr;
      append_repr(in_, repr, v);
      v = in_.text(std::move(repr));
    } else if (conversion == 's') {
      v = in_.text(to_text(in_, v));
    } else if (conversion != 0) {
      raise_error("Unknown conversion specifier '{}'", conversion);
    }
    apply(out, v, spec.bytes());
  }

  // "name.attribute[key]"
  Value select(std::string_view name) {
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    const std::string_view first = name.substr(0, first_end);
    Value v;
    const bool numeric = first.find_first_not_of("0123456789") == first.npos;
    if (numeric) {
      size_t index = next_;
      if (first.empty()) {
        if (!name.empty()) raise_error("''");
        if (numbered_) raise_error("cannot switch from manual field specification to automatic field numbering");
        ++next_;
      } else {
        if (name == first) {  // string.Formatter looks no closer
          if (next_ > 0) raise_error("cannot switch from manual field specification to automatic field numbering");
          numbered_ = true;
        }
        index = first.size() > 9 ? SIZE_MAX : static_cast<size_t>(std::stoul(std::string(first)));
      }
      if (index >= args_.positional.size()) {
        raise_error("tuple index out of range");
      }
      v = args_.positional[index];
    } else {
      const auto* found = &args_.named;
      size_t i = 0;
      while (i < found->size() && (*found)[i].first != first) ++i;
      if (i == found->size()) raise_error("{}", repr_string(first));
      v = (*found)[i].second;
    }
    for (size_t at = first_end; at < name.size();) {
      in_.step();
      if (name[at] == '.') {
        const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        v = get_attribute(in_, v, name.substr(at + 1, end - at - 1));
        at = end;
      } else {
        const size_t close = name.find(']', at);
        if (name[at] != '[' || close == name.npos) raise_error("Missing ']' in format string");
        const std::string_view key = name.substr(at + 1, close - at - 1);
        const bool digits = !key.empty() && key.size() < 19 && key.find_first_not_of("0123456789") == key.npos;
        v = get_item(in_, v, digits ? Value::integer(std::stoll(std::string(key))) : in_.str(std::string(key)));
        at = close + 1;
      }
    }
    return v;
  }

  static Field parse(std::string_view s) {
    Field spec;
    size_t at = 0;
    bool filled = false;
    const auto align_at = [&](size_t i) { return i < s.size() && std::string_view("<>=^").find(s[i]) != s.npos; };
    if (!s.empty()) {
      const size_t n = decode(s, 0).bytes;
      if (align_at(n)) {
        spec.fill = std::string(s.substr(0, n));
        spec.align = s[n];
        at = n + 1;
        filled = true;
      } else if (align_at(0)) {
        spec.align = s[0];
        at = 1;
      }
    }
    const auto peek = [&] { return at < s.size() ? s[at] : '\0'; };
    if (peek() == '+' || peek() == '-' || peek() == ' ') spec.sign = s[at++], spec.signed_given = true;
    if (peek() == 'z') ++at, spec.no_negative_zero = true;
    if (peek() == '#') ++at, spec.alternate = true;
    if (peek() == '0') {
      ++at;
      spec.zero = true;
      if (!filled) spec.fill.assign(1, '0');
      if (spec.align == 0) spec.align = '=';
    }
    const auto number = [&] {
      int64_t n = 0;
      while (peek() >= '0' && peek() <= '9') n = std::min<int64_t>(n * 10 + (s[at++] - '0'), kMaxFieldWidth + 1);
      return n;
    };
    spec.width = number();
    if (peek() == ',' || peek() == '_') spec.group = s[at++];
    if (peek() == '.') {
      ++at;
      if (peek() < '0' || peek() > '9') raise_error("Format specifier missing precision");
      spec.precision = number();
    }
    if (at < s.size()) spec.type = s[at++];
    if (at != s.size()) raise_error("Invalid format specifier");
    check_field(spec.width, spec.type == 's' || spec.type == 0 ? -1 : spec.precision);
    return spec;
  }

  void apply(Text& out, const Value& v, std::string_view spec_text) {
    if (spec_text.empty()) {
      const Text text = to_text(in_, v);
      in_.charge(text.size());
      out.append(text);
      return;
    }
    Field spec = parse(spec_text);
    const auto unknown = [&] {
      raise_error("Unknown format code '{}' for object of type '{}'", spec.type, type_name(v));
    };
    const char type = spec.type != 0 ? spec.type : v.is_string() ? 's' : 'd';
    if (spec.group != 0 &&
        std::string_view(spec.group == ',' ? "deEfFgG%" : "deEfFgG%boxX").find(type) == std::string_view::npos) {
      raise_error("Cannot specify '{}' with '{}'.", spec.group, type);
    }
    if (v.is_string()) {
      if (spec.type != 0 && spec.type != 's') unknown();
      if (spec.sign == ' ') raise_error("Space not allowed in string format specifier");
      if (spec.signed_given) raise_error("Sign not allowed in string format specifier");
      if (spec.no_negative_zero) {
        raise_error("Negative zero coercion (z) not allowed in string format specifier");
      }
      if (spec.alternate) raise_error("Alternate form (#) not allowed in string format specifier");
      if (spec.align == '=' && !spec.zero) raise_error("'=' alignment not allowed in string format specifier");
      if (spec.align == '=') spec.align = '<';
      return pad_text(in_, out, spec, v.as_text());
    }
    if (!is_number(v)) raise_error("unsupported format string passed to {}.__format__", type_name(v));
    const bool integral =
        is_integral(v) && (spec.type == 0 || std::string_view("dxXobnc").find(spec.type) != std::string_view::npos);
    if (integral) return integer(out, spec, v);
    if (spec.type != 0 && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos) unknown();
    real(out, spec, float_of(v));
  }

  void integer(Text& out, Field spec, const Value& v) {
    if (spec.precision >= 0) raise_error("Precision not allowed in integer format specifier");
    if (spec.no_negative_zero) raise_error("Negative zero coercion (z) not allowed in integer format specifier");
    if (spec.type == 'c' && spec.signed_given) raise_error("Sign not allowed with integer format specifier 'c'");
    if (spec.type == 'c' && spec.alternate) {
      raise_error("Alternate form (#) not allowed with integer format specifier 'c'");
    }
    if (spec.type == 'c') {
      const int64_t i = clamped_int(v);
      if (i < 0 || i > 0x10FFFF || (i >= 0xD800 && i < 0xE000)) raise_error("%c arg not in range(0x110000)");
      std::string s;
      append_utf8(s, static_cast<uint32_t>(i));
      return pad_text(in_, out, spec, Text(s, true));
    }
    const BigInt i = big_of(v);
    in_.step(i.cost());
    std::string body = int_digits(i, spec.type);
    const bool decimal = spec.type == 0 || spec.type == 'd' || spec.type == 'n';
    const std::string prefix = !spec.alternate    ? ""
                               : spec.type == 'x' ? "0x"
                               : spec.type == 'X' ? "0X"
                               : spec.type == 'o' ? "0o"
                               : spec.type == 'b' ? "0b"
                                                  : "";
    const bool sign = i.negative() || spec.sign != '-';
    if (spec.group != 0) body = grouped_to(spec, std::move(body), decimal ? 3 : 4, (sign ? 1 : 0) + prefix.size());
    pad_number(in_, out, spec, i.negative(), prefix, body);
  }

  // Digits in groups; filled with zeros to the field's width, the zeros are grouped too. `others` characters stand
  // around.
  std::string grouped_to(const Field& spec, std::string digits, size_t size, size_t others) {
    if (spec.fill == "0" && spec.align == '=') {
      const size_t width = static_cast<size_t>(spec.width);
      size_t n = digits.size();
      while (n + (n - 1) / size + others < width) ++n;
      in_.charge(2 * n);
      digits.insert(0, n - digits.size(), '0');
    }
    return grouped(digits, spec.group, size);
  }

  void real(Text& out, const Field& spec, double d) {
    bool negative = std::signbit(d) && !std::isnan(d);
    std::string body;
    if (spec.type == 0 && spec.precision < 0) {
      body = float_repr(std::fabs(d));
    } else {
      const char type = spec.type == '%' ? 'f' : spec.type == 0 || spec.type == 'n' ? 'g' : spec.type;
      body =
          float_digits(spec.type == '%' ? d * 100 : d, type, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
      if (spec.type == 0 && body.find_first_of(".einf") == body.npos) body += ".0";
    }
    if (spec.no_negative_zero) {
      const size_t mantissa = std::min(body.find_first_of("eEin"), body.size());
      if (std::isfinite(d) && body.find_first_of("123456789") >= mantissa) negative = false;
    }
    if (spec.group != 0) {
      const size_t end = std::min(body.find_first_not_of("0123456789"), body.size());
      const std::string rest = body.substr(end) + (spec.type == '%' ? "%" : "");
      const bool sign = negative || spec.sign != '-';
      if (end > 0) body = grouped_to(spec, body.substr(0, end), 3, (sign ? 1 : 0) + rest.size()) + body.substr(end);
    }
    if (spec.type == '%') body += "%";
    pad_number(in_, out, spec, negative, "", body);
  }

  Interp& in_;
  const Args& args_;
  size_t next_ = 0;        // fields without a number so far
  bool numbered_ = false;  // a field had one
};

}  // namespace

Value brace_format(Interp& in, const Value& format, const Args& args) {
  in.step(format.weight());
  return in.text(BraceFormatter(in, args).run(format.as_text(), 0), is_safe(format));
}

}  // namespace minfer::chat::jinja
