// Schoolbook arithmetic: numbers here have a few limbs, at most 447.
#include "chat/jinja/bigint.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "chat/jinja/raised.h"

namespace minfer::chat::jinja {

BigInt::BigInt(int64_t i) : negative_(i < 0) {
  uint64_t magnitude = i < 0 ? ~static_cast<uint64_t>(i) + 1 : static_cast<uint64_t>(i);
  for (; magnitude != 0; magnitude >>= 32) limbs_.push_back(static_cast<uint32_t>(magnitude));
}

BigInt BigInt::of(double d) {
  char buffer[400];  // the largest double has 309 digits
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, std::trunc(d), std::chars_format::fixed, 0);
  return parse(std::string_view(buffer, static_cast<size_t>(end - buffer))).value_or(BigInt());
}

std::optional<BigInt> BigInt::parse(std::string_view text, unsigned base) {
  BigInt out;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  // As many digits at a time as fit a limb.
  uint64_t chunk = 0, unit = 1;
  const auto take_in = [&] {
    uint64_t carry = chunk;
    for (uint32_t& limb : out.limbs_) {
      carry += limb * unit;
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) out.limbs_.push_back(static_cast<uint32_t>(carry));
    if (out.limbs_.size() > kMaxBits / 32 + 1) out.settle();  // refuses
    chunk = 0;
    unit = 1;
  };
  for (const char c : text) {
    const char lower = static_cast<char>(c | 0x20);
    const unsigned digit = c >= '0' && c <= '9'           ? static_cast<unsigned>(c - '0')
                           : lower >= 'a' && lower <= 'z' ? static_cast<unsigned>(lower - 'a') + 10
                                                          : 36;
    if (digit >= base) return std::nullopt;
    chunk = chunk * base + digit;
    unit *= base;
    if (unit * base > UINT32_MAX) take_in();
  }
  take_in();
  out.negative_ = negative;
  out.settle();
  return out;
}

void BigInt::settle() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  if (limbs_.empty()) negative_ = false;
  if (bits() > kMaxBits) {
    throw Raised{ErrorCode::kUnsupported, fmt::format("an integer has more than {} bits", kMaxBits), Pos{}};
  }
}

size_t BigInt::bits() const {
  return limbs_.empty() ? 0 : limbs_.size() * 32 - static_cast<size_t>(std::countl_zero(limbs_.back()));
}

std::optional<int64_t> BigInt::narrow() const {
  if (limbs_.size() > 2) return std::nullopt;
  uint64_t magnitude = 0;
  for (size_t i = limbs_.size(); i-- > 0;) magnitude = magnitude << 32 | limbs_[i];
  if (magnitude > (uint64_t{1} << 63) - (negative_ ? 0 : 1)) return std::nullopt;
  return static_cast<int64_t>(negative_ ? ~magnitude + 1 : magnitude);
}

std::string BigInt::digits(unsigned base) const {
  // As many digits at a time as fit a limb.
  uint32_t chunk = base;
  size_t chunk_digits = 1;
  while (uint64_t{chunk} * base <= UINT32_MAX) chunk *= base, ++chunk_digits;
  std::string out;
  for (Limbs rest = limbs_; !rest.empty();) {
    uint64_t remainder = 0;
    for (size_t i = rest.size(); i-- > 0;) {
      remainder = remainder << 32 | rest[i];
      rest[i] = static_cast<uint32_t>(remainder / chunk);
      remainder %= chunk;
    }
    while (!rest.empty() && rest.back() == 0) rest.pop_back();
    for (size_t i = 0; i < chunk_digits && (remainder != 0 || !rest.empty()); ++i, remainder /= base) {
      out += "0123456789abcdefghijklmnopqrstuvwxyz"[remainder % base];
    }
  }
  if (out.empty()) out.assign(1, '0');
  std::reverse(out.begin(), out.end());
  return out;
}

double BigInt::as_double() const {
  const std::string s = digits();
  double d = 0;
  if (std::from_chars(s.data(), s.data() + s.size(), d).ec == std::errc::result_out_of_range) d = HUGE_VAL;
  return negative_ ? -d : d;
}

BigInt BigInt::operator-() const {
  BigInt out = *this;
  out.negative_ = !negative_ && !limbs_.empty();
  return out;
}

int BigInt::compare_limbs(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

int compare(const BigInt& a, const BigInt& b) {
  if (a.negative_ != b.negative_) return a.negative_ ? -1 : 1;
  const int c = BigInt::compare_limbs(a.limbs_, b.limbs_);
  return a.negative_ ? -c : c;
}

BigInt::Limbs BigInt::add_limbs(const Limbs& a, const Limbs& b) {
  Limbs out(std::max(a.size(), b.size()) + 1);
  uint64_t carry = 0;
  for (size_t i = 0; i < out.size(); ++i, carry >>= 32) {
    carry += uint64_t{i < a.size() ? a[i] : 0} + (i < b.size() ? b[i] : 0);
    out[i] = static_cast<uint32_t>(carry);
  }
  return out;
}

BigInt::Limbs BigInt::subtract_limbs(const Limbs& a, const Limbs& b) {
  Limbs out(a.size());
  int64_t borrow = 0;
  for (size_t i = 0; i < out.size(); ++i, borrow >>= 32) {
    borrow += int64_t{a[i]} - (i < b.size() ? b[i] : 0);
    out[i] = static_cast<uint32_t>(borrow);
  }
  return out;
}

BigInt operator+(const BigInt& a, const BigInt& b) {
  BigInt out;
  if (a.negative_ == b.negative_) {
    out.limbs_ = BigInt::add_limbs(a.limbs_, b.limbs_);
    out.negative_ = a.negative_;
  } else if (BigInt::compare_limbs(a.limbs_, b.limbs_) >= 0) {
    out.limbs_ = BigInt::subtract_limbs(a.limbs_, b.limbs_);
    out.negative_ = a.negative_;
  } else {
    out.limbs_ = BigInt::subtract_limbs(b.limbs_, a.limbs_);
    out.negative_ = b.negative_;
  }
  out.settle();
  return out;
}

BigInt operator*(const BigInt& a, const BigInt& b) {
  BigInt out;
  out.limbs_.assign(a.limbs_.size() + b.limbs_.size(), 0);
  for (size_t i = 0; i < a.limbs_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.limbs_.size() || carry != 0; ++j, carry >>= 32) {
      carry += out.limbs_[i + j] + (j < b.limbs_.size() ? uint64_t{a.limbs_[i]} * b.limbs_[j] : 0);
      out.limbs_[i + j] = static_cast<uint32_t>(carry);
    }
  }
  out.negative_ = a.negative_ != b.negative_;
  out.settle();
  return out;
}

BigInt BigInt::shifted_left(size_t n) const {
  BigInt out;
  out.negative_ = negative_;
  out.limbs_.assign(n / 32, 0);
  uint64_t carry = 0;
  for (const uint32_t limb : limbs_) {
    carry |= uint64_t{limb} << (n % 32);
    out.limbs_.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;
  }
  out.limbs_.push_back(static_cast<uint32_t>(carry));
  while (!out.limbs_.empty() && out.limbs_.back() == 0) out.limbs_.pop_back();  // may be longer than kMaxBits
  return out;
}

BigInt::Limbs BigInt::divide_limbs(Limbs a, const Limbs& divisor, Limbs* remainder) {
  if (compare_limbs(a, divisor) < 0) {
    *remainder = std::move(a);
    return {};
  }
  const size_t n = divisor.size();
  Limbs quotient(a.size() - n + 1);
  if (n == 1) {
    uint64_t rest = 0;
    for (size_t i = a.size(); i-- > 0;) {
      rest = rest << 32 | a[i];
      quotient[i] = static_cast<uint32_t>(rest / divisor[0]);
      rest %= divisor[0];
    }
    remainder->assign(1, static_cast<uint32_t>(rest));
    return quotient;
  }
  // Both shifted so that the divisor's top bit is set: a guessed digit is then at most 2 too large.
  const auto shift = static_cast<unsigned>(std::countl_zero(divisor.back()));
  const auto shifted = [&](const Limbs& x) {
    Limbs out(x.size() + 1);
    uint64_t carry = 0;
    for (size_t i = 0; i < x.size(); ++i, carry >>= 32) {
      carry |= uint64_t{x[i]} << shift;
      out[i] = static_cast<uint32_t>(carry);
    }
    out[x.size()] = static_cast<uint32_t>(carry);
    return out;
  };
  Limbs u = shifted(a);
  const Limbs v = shifted(divisor);  // its last limb is 0 and not looked at
  for (size_t j = quotient.size(); j-- > 0;) {
    const uint64_t top = uint64_t{u[j + n]} << 32 | u[j + n - 1];
    uint64_t guess = top / v[n - 1], rest = top % v[n - 1];
    while (guess > UINT32_MAX || guess * v[n - 2] > (rest << 32 | u[j + n - 2])) {
      --guess;
      rest += v[n - 1];
      if (rest > UINT32_MAX) break;
    }
    int64_t borrow = 0;
    uint64_t carry = 0;
    for (size_t i = 0; i < n; ++i) {
      carry += guess * v[i];
      borrow += int64_t{u[j + i]} - static_cast<uint32_t>(carry);
      u[j + i] = static_cast<uint32_t>(borrow);
      carry >>= 32;
      borrow >>= 32;
    }
    borrow += int64_t{u[j + n]} - static_cast<int64_t>(carry);
    u[j + n] = static_cast<uint32_t>(borrow);
    if (borrow < 0) {  // one too large after all: add the divisor back
      --guess;
      uint64_t sum = 0;
      for (size_t i = 0; i < n; ++i, sum >>= 32) {
        sum += uint64_t{u[j + i]} + v[i];
        u[j + i] = static_cast<uint32_t>(sum);
      }
      u[j + n] += static_cast<uint32_t>(sum);
    }
    quotient[j] = static_cast<uint32_t>(guess);
  }
  u.resize(n);
  for (size_t i = 0; i < n; ++i) {
    u[i] = static_cast<uint32_t>((uint64_t{i + 1 < n ? u[i + 1] : 0} << 32 | u[i]) >> shift);
  }
  *remainder = std::move(u);
  return quotient;
}

void BigInt::divide(const BigInt& a, const BigInt& b, BigInt* quotient, BigInt* remainder) {
  BigInt q, r;
  q.limbs_ = divide_limbs(a.limbs_, b.limbs_, &r.limbs_);
  q.negative_ = a.negative_ != b.negative_;
  r.negative_ = a.negative_;
  q.settle();
  r.settle();
  if (!r.zero() && a.negative_ != b.negative_) {
    q = q - BigInt(1);
    r = r + b;
  }
  if (quotient != nullptr) *quotient = std::move(q);
  if (remainder != nullptr) *remainder = std::move(r);
}

double BigInt::true_divide(const BigInt& a, const BigInt& b) {
  if (a.zero()) return 0;
  // A quotient of 63 or 64 bits, its last one set when anything remains: rounding that to 53 bits rounds once.
  const auto shift = 63 - static_cast<int64_t>(a.bits()) + static_cast<int64_t>(b.bits());
  const BigInt x = shift > 0 ? a.shifted_left(static_cast<size_t>(shift)) : a;
  const BigInt y = shift < 0 ? b.shifted_left(static_cast<size_t>(-shift)) : b;
  Limbs rest;
  const Limbs q = divide_limbs(x.limbs_, y.limbs_, &rest);
  uint64_t bits = 0;
  for (size_t i = std::min<size_t>(q.size(), 2); i-- > 0;) bits = bits << 32 | q[i];
  if (std::any_of(rest.begin(), rest.end(), [](uint32_t limb) { return limb != 0; })) bits |= 1;
  const double d = std::ldexp(static_cast<double>(bits), static_cast<int>(-shift));
  return a.negative_ != b.negative_ ? -d : d;
}

BigInt BigInt::power(uint64_t n) const {
  BigInt out(1), base = *this;
  for (; n > 0; n >>= 1) {
    if ((n & 1) != 0) out = out * base;
    if (n > 1) base = base * base;
  }
  return out;
}

}  // namespace minfer::chat::jinja
