// Numbers and texts in fields.
#include "chat/jinja/format_field.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

std::string grouped(const std::string& digits, char separator, size_t size) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) out += separator;
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

std::string int_digits(const BigInt& i, char type) {
  std::string out = i.digits(type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10);
  if (type == 'X') std::transform(out.begin(), out.end(), out.begin(), ::toupper);
  return out;
}

// Puts sign, prefix and body into the field.
void pad_number(Interp& in, Text& out, const Field& field, bool negative, const std::string& prefix, std::string body) {
  std::string head = negative ? "-" : field.sign == '+' ? "+" : field.sign == ' ' ? " " : "";
  head += prefix;
  const int64_t n = static_cast<int64_t>(head.size() + count_chars(body));
  const int64_t pad = std::max<int64_t>(0, field.width - n);
  in.charge(static_cast<uint64_t>(pad) * field.fill.size() + head.size() + body.size());
  const char align = field.align != 0 ? field.align : '>';
  const auto fill = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) out.append(field.fill, true);
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

void pad_text(Interp& in, Text& out, const Field& field, const Text& text) {
  Text cut = text;
  if (field.precision >= 0) cut = text.slice(0, byte_offset(text.view(), static_cast<size_t>(field.precision)));
  const int64_t pad = std::max<int64_t>(0, field.width - static_cast<int64_t>(count_chars(cut.view())));
  in.charge(static_cast<uint64_t>(pad) * field.fill.size() + cut.size());
  const int64_t left = field.align == '>' ? pad : field.align == '^' ? pad / 2 : 0;
  for (int64_t i = 0; i < left; ++i) out.append(field.fill, true);
  out.append(cut);
  for (int64_t i = left; i < pad; ++i) out.append(field.fill, true);
}

void check_field(int64_t width, int64_t precision) {
  if (width > kMaxFieldWidth || precision > kMaxPrecision) {
    throw Raised{ErrorCode::kResourceExhausted,
                 fmt::format("format field wider than {} or finer than {} digits", kMaxFieldWidth, kMaxPrecision),
                 Pos{}};
  }
}

}  // namespace minfer::chat::jinja
