// "..." % values, "...".format(...) and strftime.
// Source: Python 3's printf-style formatting, format specification mini-language and datetime.strftime (C locale).
#include <cmath>

#include "base/checked.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

// Wider fields and longer fractions than this are refused: no layout needs them.
constexpr int64_t kMaxFieldWidth = 1 << 20;
constexpr int64_t kMaxPrecision = 400;

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false, zero = false;
  char group = 0;  // , or _
  int64_t width = 0, precision = -1;
  char type = 0;
};

std::string grouped(const std::string& digits, char separator) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// A finite or infinite double by e, f, g (upper case too), without its sign.
std::string float_digits(double d, char type, int64_t precision, bool alternate) {
  if (std::isnan(d)) return std::isupper(static_cast<unsigned char>(type)) ? "NAN" : "nan";
  if (std::isinf(d)) return std::isupper(static_cast<unsigned char>(type)) ? "INF" : "inf";
  const std::string format = std::string("{:") + (alternate ? "#" : "") + ".{}" + type + "}";
  return fmt::format(fmt::runtime(format), std::fabs(d), precision);
}

std::string int_digits(uint64_t magnitude, char type) {
  switch (type) {
    case 'x': return fmt::format("{:x}", magnitude);
    case 'X': return fmt::format("{:X}", magnitude);
    case 'o': return fmt::format("{:o}", magnitude);
    case 'b': return fmt::format("{:b}", magnitude);
    default: return std::to_string(magnitude);
  }
}

uint64_t magnitude_of(int64_t i) { return i < 0 ? ~static_cast<uint64_t>(i) + 1 : static_cast<uint64_t>(i); }

// Puts sign, prefix and body into the field.
void pad_number(Interp& in, Text& out, const Spec& spec, bool negative, const std::string& prefix, std::string body) {
  std::string head = negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
  head += prefix;
  const int64_t n = static_cast<int64_t>(head.size() + count_chars(body));
  const int64_t pad = std::max<int64_t>(0, spec.width - n);
  in.charge(static_cast<uint64_t>(pad) * spec.fill.size() + head.size() + body.size());
  const char align = spec.align != 0 ? spec.align : '>';
  const auto fill = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) out.append(spec.fill, true);
  };
  if (align == '=') {
    out.append(head, true);
    fill(pad);
    out.append(body, true);
    return;
  }
  const int64_t left = align == '<' ? 0 : align == '>' ? pad : pad / 2;
  fill(left);
  out.append(head + body, true);
  fill(pad - left);
}

void pad_text(Interp& in, Text& out, const Spec& spec, const Text& text) {
  Text cut = text;
  if (spec.precision >= 0) cut = text.slice(0, byte_offset(text.view(), static_cast<size_t>(spec.precision)));
  const int64_t pad = std::max<int64_t>(0, spec.width - static_cast<int64_t>(count_chars(cut.view())));
  in.charge(static_cast<uint64_t>(pad) * spec.fill.size() + cut.size());
  const int64_t left = spec.align == '>' ? pad : spec.align == '^' ? pad / 2 : 0;
  for (int64_t i = 0; i < left; ++i) out.append(spec.fill, true);
  out.append(cut);
  for (int64_t i = left; i < pad; ++i) out.append(spec.fill, true);
}

void check_field(int64_t width, int64_t precision) {
  if (width > kMaxFieldWidth || precision > kMaxPrecision) {
    throw Raised{ErrorCode::kResourceExhausted,
                 fmt::format("format field wider than {} or finer than {} digits", kMaxFieldWidth, kMaxPrecision), Pos{}};
  }
}

// ---- %

class PercentFormatter {
 public:
  PercentFormatter(Interp& in, const Value& format, const Value& args) : in_(in), format_(format.as_text()), args_(args) {
    in.step(format.weight());
  }

  Text run() {
    const std::string_view f = format_.view();
    while (at_ < f.size()) {
      const size_t percent = std::min(f.find('%', at_), f.size());
      in_.charge(percent - at_);
      out_.append_slice(format_, at_, percent - at_);
      at_ = percent;
      if (at_ < f.size()) conversion();
    }
    const bool all_used = args_.is(Kind::kTuple) ? next_ >= args_.items().size() : (next_ > 0 || args_.is_dict() || args_.is_sequence());
    if (!all_used) raise_error("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char peek() const {
    if (at_ >= format_.size()) raise_error("incomplete format");
    return format_.view()[at_];
  }

  Value argument() {
    if (mapped_) return *std::exchange(mapped_, std::nullopt);
    if (args_.is(Kind::kTuple)) {
      if (next_ >= args_.items().size()) raise_error("not enough arguments for format string");
      return args_.items()[next_++];
    }
    if (next_++ > 0) raise_error("not enough arguments for format string");
    return args_;
  }

  int64_t number() {
    if (peek() == '*') {
      ++at_;
      const Value v = argument();
      if (!is_int(v)) raise_error("* wants int");
      return int_of(v);
    }
    int64_t n = 0;
    while (peek() >= '0' && peek() <= '9') {
      n = std::min<int64_t>(n * 10 + (peek() - '0'), kMaxFieldWidth + 1);
      ++at_;
    }
    return n;
  }

  void conversion() {
    in_.step();
    const size_t start = at_++;
    if (peek() == '(') {
      const size_t close = format_.view().find(')', at_);
      if (close == std::string_view::npos) raise_error("incomplete format key");
      if (!args_.is_dict()) raise_error("format requires a mapping");
      const std::string key(format_.view().substr(at_ + 1, close - at_ - 1));
      const Value* found = args_.find(key);
      if (found == nullptr) raise_error("{}", repr_string(key));
      mapped_ = *found;
      at_ = close + 1;
    }
    Spec spec;
    bool left = false;
    for (;; ++at_) {
      const char c = peek();
      if (c == '-') {
        left = true;
      } else if (c == '+') {
        spec.sign = '+';
      } else if (c == ' ') {
        if (spec.sign != '+') spec.sign = ' ';
      } else if (c == '#') {
        spec.alternate = true;
      } else if (c == '0') {
        spec.zero = true;
      } else {
        break;
      }
    }
    spec.width = number();
    if (spec.width < 0) {
      left = true;
      spec.width = spec.width == std::numeric_limits<int64_t>::min() ? kMaxFieldWidth + 1 : -spec.width;
    }
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max<int64_t>(0, number());
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    const char type = peek();
    ++at_;
    check_field(spec.width, type == 's' || type == 'r' || type == 'a' ? -1 : spec.precision);
    spec.align = left ? '<' : '>';
    const bool markup = format_.is_markup(start);
    if (type == '%') {
      out_.append("%", markup);
      return;
    }
    value(type, spec, left);
  }

  void value(char type, Spec spec, bool left) {
    const Value v = argument();
    refuse_operand(type, v);
    switch (type) {
      case 's': return pad_text(in_, out_, spec, to_text(in_, v));
      case 'r':
      case 'a': {
        Text repr;
        append_repr(in_, repr, v);
        return pad_text(in_, out_, spec, repr);
      }
      case 'c': {
        if (v.is_string() && v.object<StringObject>()->n_chars == 1) {
          spec.precision = -1;
          return pad_text(in_, out_, spec, v.as_text());
        }
        if (!is_int(v)) raise_error("%c requires int or char");
        const int64_t code = int_of(v);
        if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) raise_error("%c arg not in range(0x110000)");
        std::string s;
        append_utf8(s, static_cast<uint32_t>(code));
        spec.precision = -1;
        return pad_text(in_, out_, spec, Text(s, true));
      }
      default: break;
    }
    if (spec.zero && !left) {
      spec.fill.assign(1, '0');
      spec.align = '=';
    }
    if (type == 'd' || type == 'i' || type == 'u' || type == 'x' || type == 'X' || type == 'o') {
      const int64_t i = integer(type, v);
      std::string body = int_digits(magnitude_of(i), type);
      if (spec.precision > static_cast<int64_t>(body.size())) {
        body.insert(0, std::string(static_cast<size_t>(spec.precision) - body.size(), '0'));
      }
      const std::string prefix = !spec.alternate ? "" : type == 'x' ? "0x" : type == 'X' ? "0X" : type == 'o' ? "0o" : "";
      return pad_number(in_, out_, spec, i < 0, prefix, body);
    }
    if (std::string_view("eEfFgG").find(type) == std::string_view::npos) {
      raise_error("unsupported format character '{}' ({:#x}) at index {}", type, static_cast<unsigned>(type), at_ - 1);
    }
    if (!is_number(v)) raise_error("must be real number, not {}", type_name(v));
    const double d = float_of(v);
    pad_number(in_, out_, spec, std::signbit(d) && !std::isnan(d), "",
               float_digits(d, type, spec.precision < 0 ? 6 : spec.precision, spec.alternate));
  }

  static void refuse_operand(char type, const Value& v) {
    if (type != 's' && type != 'r' && type != 'a') refuse_undefined(v);
  }

  static int64_t integer(char type, const Value& v) {
    if (is_int(v)) return int_of(v);
    const bool decimal = type == 'd' || type == 'i' || type == 'u';
    if (!decimal || !v.is(Kind::kFloat)) {
      raise_error("%{} format: {} is required, not {}", type, decimal ? "a real number" : "an integer", type_name(v));
    }
    if (!(std::fabs(v.as_float()) < 0x1p63)) overflow();
    return static_cast<int64_t>(v.as_float());
  }

  Interp& in_;
  const Text format_;
  const Value args_;
  Text out_;
  size_t at_ = 0, next_ = 0;
  std::optional<Value> mapped_;  // what %(key)... selected
};

// ---- str.format

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
        ++next_;
      } else {
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

  static Spec parse(std::string_view s) {
    Spec spec;
    size_t at = 0;
    const auto align_at = [&](size_t i) { return i < s.size() && std::string_view("<>=^").find(s[i]) != s.npos; };
    if (!s.empty()) {
      const size_t n = decode(s, 0).bytes;
      if (align_at(n)) {
        spec.fill = std::string(s.substr(0, n));
        spec.align = s[n];
        at = n + 1;
      } else if (align_at(0)) {
        spec.align = s[0];
        at = 1;
      }
    }
    const auto peek = [&] { return at < s.size() ? s[at] : '\0'; };
    if (peek() == '+' || peek() == '-' || peek() == ' ') spec.sign = s[at++];
    if (peek() == '#') ++at, spec.alternate = true;
    if (peek() == '0') {
      ++at;
      spec.zero = true;
      if (spec.align == 0) {
        spec.align = '=';
        spec.fill.assign(1, '0');
      }
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
    Spec spec = parse(spec_text);
    const auto unknown = [&] {
      raise_error("Unknown format code '{}' for object of type '{}'", spec.type, type_name(v));
    };
    if (v.is_string()) {
      if (spec.type != 0 && spec.type != 's') unknown();
      if (spec.align == '=' && !spec.zero) raise_error("'=' alignment not allowed in string format specifier");
      if (spec.align == '=') spec.align = '<';
      return pad_text(in_, out, spec, v.as_text());
    }
    if (!is_number(v)) raise_error("unsupported format string passed to {}.__format__", type_name(v));
    if (v.is(Kind::kBool) && spec.type == 0) return pad_text(in_, out, spec, to_text(in_, v));
    const bool integral = is_int(v) && (spec.type == 0 || std::string_view("dxXobnc").find(spec.type) != std::string_view::npos);
    if (integral) return integer(out, spec, int_of(v));
    if (spec.type != 0 && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos) unknown();
    real(out, spec, float_of(v));
  }

  void integer(Text& out, Spec spec, int64_t i) {
    if (spec.precision >= 0) raise_error("Precision not allowed in integer format specifier");
    if (spec.type == 'c') {
      if (i < 0 || i > 0x10FFFF || (i >= 0xD800 && i < 0xE000)) raise_error("%c arg not in range(0x110000)");
      std::string s;
      append_utf8(s, static_cast<uint32_t>(i));
      return pad_text(in_, out, spec, Text(s, true));
    }
    std::string body = int_digits(magnitude_of(i), spec.type);
    if (spec.group != 0) body = grouped(body, spec.group);
    const std::string prefix = !spec.alternate ? ""
                               : spec.type == 'x' ? "0x"
                               : spec.type == 'X' ? "0X"
                               : spec.type == 'o' ? "0o"
                               : spec.type == 'b' ? "0b"
                                                  : "";
    pad_number(in_, out, spec, i < 0, prefix, body);
  }

  void real(Text& out, const Spec& spec, double d) {
    const bool negative = std::signbit(d) && !std::isnan(d);
    std::string body;
    if (spec.type == 0 && spec.precision < 0) {
      body = float_repr(std::fabs(d));
    } else {
      const char type = spec.type == '%' ? 'f' : spec.type == 0 || spec.type == 'n' ? 'g' : spec.type;
      body = float_digits(spec.type == '%' ? d * 100 : d, type, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
      if (spec.type == 0 && body.find_first_of(".einf") == body.npos) body += ".0";
    }
    if (spec.group != 0) {
      const size_t end = std::min(body.find_first_not_of("0123456789"), body.size());
      body = grouped(body.substr(0, end), spec.group) + body.substr(end);
    }
    if (spec.type == '%') body += "%";
    pad_number(in_, out, spec, negative, "", body);
  }

  Interp& in_;
  const Args& args_;
  size_t next_ = 0;
};

}  // namespace

Value percent_format(Interp& in, const Value& format, const Value& args) {
  return in.text(PercentFormatter(in, format, args).run(), is_safe(format));
}

Value brace_format(Interp& in, const Value& format, const Args& args) {
  in.step(format.weight());
  return in.text(BraceFormatter(in, args).run(format.as_text(), 0), is_safe(format));
}

Value strftime_value(Interp& in, const Value& format) {
  refuse_undefined(format);
  if (!format.is_string()) raise_error("strftime() argument 1 must be str, not {}", type_name(format));
  const Text& text = format.as_text();
  const std::string_view f = text.view();
  Text out;
  for (size_t at = 0; at < f.size();) {
    in.step();
    const size_t percent = std::min(f.find('%', at), f.size());
    out.append_slice(text, at, percent - at);
    if (percent == f.size()) break;
    // One directive: % [flag] [E or O] letter. Others stay as they are, as the C library leaves them.
    size_t end = percent + 1;
    if (end < f.size() && std::string_view("-_0^#").find(f[end]) != f.npos) ++end;
    if (end < f.size() && (f[end] == 'E' || f[end] == 'O')) ++end;
    const char letter = end < f.size() ? f[end] : '\0';
    const std::string directive(f.substr(percent, end + 1 - percent));
    at = std::min(end + 1, f.size());
    if (letter == 'f') {
      out.append("000000", true);
    } else if (letter == 'z' || letter == 'Z') {
      // a time without zone prints none
    } else if (std::string_view("aAbBcCdDeFgGhHIjklmMnprRsStTuUVwWxXyY%").find(letter) != std::string_view::npos) {
      char buffer[128];  // the longest, %c, takes 24 bytes in the C locale
      const std::tm& now = in.now();
      const size_t n = std::strftime(buffer, sizeof buffer, directive.c_str(), &now);
      out.append(std::string_view(buffer, n), true);
    } else {
      out.append_slice(text, percent, at - percent);
    }
  }
  return in.text(std::move(out));
}

}  // namespace minfer::chat::jinja
