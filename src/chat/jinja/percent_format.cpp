// "..." % values.
// Source: Python 3, printf-style string formatting.
#include <cmath>
#include <limits>

#include "chat/jinja/builtins.h"
#include "chat/jinja/format_field.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

class PercentFormatter {
 public:
  PercentFormatter(Interp& in, const Value& format, const Value& args)
      : in_(in), format_(format.as_text()), args_(args), safe_(is_safe(format)) {
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
    const bool all_used = args_.is(Kind::kTuple)
                              ? next_ >= args_.items().size()
                              : (next_ > 0 || args_.is_dict() || args_.is_sequence() || args_.is_undefined());
    if (!all_used) raise_error("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char peek() const {
    if (at_ >= format_.size()) raise_error("incomplete format");
    return format_.view()[at_];
  }

  Value argument() {
    if (mapped_) {
      next_ = 1;  // after a key, the mapping itself is no argument any more
      return *std::exchange(mapped_, std::nullopt);
    }
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
    if (peek() == '%') {
      out_.append("%", format_.is_markup(start));
      ++at_;
      return;
    }
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
    Field spec;
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
    value(type, spec, left);
  }

  void value(char type, Field spec, bool left) {
    const Value v = argument();
    refuse_operand(type, v);
    switch (type) {
      case 's': {
        const Text text = to_text(in_, v);
        return pad_text(in_, out_, spec, safe_ && !is_safe(v) ? escape_html(in_, text) : text);
      }
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
        if (!is_integral(v)) raise_error("%c requires int or char");
        const int64_t code = clamped_int(v);
        if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
          raise_error("%c arg not in range(0x110000)");
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
      const BigInt i = integer(type, v);
      in_.step(i.cost());
      std::string body = int_digits(i, type);
      if (spec.precision > static_cast<int64_t>(body.size())) {
        body.insert(0, std::string(static_cast<size_t>(spec.precision) - body.size(), '0'));
      }
      const std::string prefix = !spec.alternate ? ""
                                 : type == 'x'   ? "0x"
                                 : type == 'X'   ? "0X"
                                 : type == 'o'   ? "0o"
                                                 : "";
      return pad_number(in_, out_, spec, i.negative(), prefix, body);
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

  static BigInt integer(char type, const Value& v) {
    if (is_integral(v)) return big_of(v);
    const bool decimal = type == 'd' || type == 'i' || type == 'u';
    if (!decimal || !v.is(Kind::kFloat)) {
      raise_error("%{} format: {} is required, not {}", type, decimal ? "a real number" : "an integer", type_name(v));
    }
    if (std::isnan(v.as_float())) raise_error("cannot convert float NaN to integer");
    if (std::isinf(v.as_float())) raise_error("cannot convert float infinity to integer");
    return BigInt::of(v.as_float());
  }

  Interp& in_;
  const Text format_;
  const Value args_;
  const bool safe_;  // a format marked safe escapes what it takes in
  Text out_;
  size_t at_ = 0, next_ = 0;
  std::optional<Value> mapped_;  // what %(key)... selected
};

}  // namespace

Value percent_format(Interp& in, const Value& format, const Value& args) {
  return in.text(PercentFormatter(in, format, args).run(), is_safe(format));
}

}  // namespace minfer::chat::jinja
