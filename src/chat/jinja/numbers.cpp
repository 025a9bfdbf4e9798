// Reading and rounding numbers as Python's int(), float() and round() do.
#include <charconv>
#include <cmath>

#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

std::string_view stripped(std::string_view s) {
  while (!s.empty() && is_space(decode(s, 0).code)) s.remove_prefix(decode(s, 0).bytes);
  while (!s.empty() && is_space(decode_before(s, s.size()).code)) s.remove_suffix(decode_before(s, s.size()).bytes);
  return s;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

// Underscores may stand between digits; nullopt when one stands elsewhere.
std::optional<std::string> without_underscores(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '_') {
      out += s[i];
    } else if (i == 0 || i + 1 == s.size() || !std::isalnum(static_cast<unsigned char>(s[i - 1])) ||
               !std::isalnum(static_cast<unsigned char>(s[i + 1]))) {
      return std::nullopt;
    }
  }
  return out;
}

bool iequals(std::string_view a, std::string_view lower) {
  if (a.size() != lower.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if ((a[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

}  // namespace

std::optional<double> parse_float(std::string_view text) {
  std::string_view s = stripped(text);
  const auto clean = without_underscores(s);
  if (!clean) return std::nullopt;
  s = *clean;
  const bool negative = s.starts_with('-');
  if (s.starts_with('-') || s.starts_with('+')) s.remove_prefix(1);
  if (iequals(s, "inf") || iequals(s, "infinity")) return negative ? -HUGE_VAL : HUGE_VAL;
  if (iequals(s, "nan")) return std::nan("");
  if (s.empty() || !(digit(s[0]) || (s[0] == '.' && s.size() > 1 && digit(s[1])))) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (end != s.data() + s.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // from_chars tells too large and too small alike; the sign of the exponent decides.
    const size_t e = s.find_first_of("eE");
    const bool tiny = e != s.npos && e + 1 < s.size() && s[e + 1] == '-';
    value = tiny || (e == s.npos && s[0] == '0') || s[0] == '.' ? 0.0 : HUGE_VAL;
  }
  return negative ? -value : value;
}

std::optional<Value> parse_int(Interp& in, std::string_view text, int64_t base) {
  std::string_view s = stripped(text);
  const bool negative = s.starts_with('-');
  if (s.starts_with('-') || s.starts_with('+')) s.remove_prefix(1);
  if ((base != 0 && base < 2) || base > 36) return std::nullopt;
  if (s.size() > 2 && s[0] == '0') {
    const char c = static_cast<char>(s[1] | 0x20);
    const int64_t prefix = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    if (prefix != 0 && (base == 0 || base == prefix)) {
      base = prefix;
      s.remove_prefix(s[2] == '_' ? 3 : 2);
    }
  }
  if (base == 0) base = 10;
  const auto digits = without_underscores(s);
  if (!digits || digits->empty()) return std::nullopt;
  if (digits->front() == '-') return std::nullopt;
  const auto magnitude = BigInt::parse(*digits, static_cast<unsigned>(base));
  if (!magnitude) return std::nullopt;
  return integer(in, negative ? -*magnitude : *magnitude);
}

// round(v, digits): half to even on the exact binary value, which is what printing with that many decimals gives.
Value round_number(Interp& in, const Value& v, int64_t digits, bool keep_int) {
  if (is_integral(v)) {
    if (digits >= 0) return keep_int ? integer(in, big_of(v)) : Value::real(float_of(v));
    const BigInt x = big_of(v);
    if (-digits > static_cast<int64_t>(x.bits())) return Value::integer(0);
    in.step(x.cost());
    const BigInt unit = BigInt(10).power(static_cast<uint64_t>(-digits));
    BigInt q, r;
    BigInt::divide(x, unit, &q, &r);
    const int half = compare(r + r, unit);
    if (half > 0 || (half == 0 && q.odd())) q = q + BigInt(1);
    return integer(in, q * unit);
  }
  const double d = v.as_float();
  if (!std::isfinite(d) || digits > 323) return v;
  if (digits < -308) return Value::real(std::copysign(0.0, d));
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return Value::real(std::nearbyint(d / unit) * unit);
  }
  const std::string text = fmt::format("{:.{}f}", d, digits);
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return Value::real(rounded);
}

}  // namespace minfer::chat::jinja
