// Integers beyond 64 bits, as Python has them: sign and magnitude, bounded in length.
// Layout:  magnitude in 32-bit limbs, least significant first, no zero limb at the top; zero has none.
// Errors:  a result or text of more than kMaxBits is Raised with kUnsupported; nothing wraps.
// Source:  division is Knuth's algorithm D (The Art of Computer Programming, vol. 2, 4.3.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minfer::chat::jinja {

class BigInt {
 public:
  // 4,300 decimal digits, which is where Python refuses to print.
  static constexpr size_t kMaxBits = 14285;

  BigInt() = default;  // 0
  explicit BigInt(int64_t i);
  static BigInt of(double d);  // truncated. Requires: finite
  // [-]digits in base 2 to 36; nullopt when it is anything else.
  static std::optional<BigInt> parse(std::string_view text, unsigned base = 10);

  bool zero() const { return limbs_.empty(); }
  bool negative() const { return negative_; }
  bool odd() const { return !limbs_.empty() && (limbs_[0] & 1) != 0; }
  size_t bits() const;                                                      // of the magnitude
  uint64_t cost() const { return 1 + limbs_.size() * limbs_.size() / 64; }  // steps of an operation of this size
  std::optional<int64_t> narrow() const;                                    // when it fits
  std::string digits(unsigned base = 10) const;                             // of the magnitude
  std::string text() const { return std::string(negative_ ? "-" : "").append(digits()); }
  double as_double() const;  // nearest, ties to even; infinite when too large

  BigInt operator-() const;
  friend BigInt operator+(const BigInt& a, const BigInt& b);
  friend BigInt operator-(const BigInt& a, const BigInt& b) { return a + -b; }
  friend BigInt operator*(const BigInt& a, const BigInt& b);
  friend int compare(const BigInt& a, const BigInt& b);  // -1, 0, 1
  // Rounded down, the remainder with b's sign. Requires: b is not 0
  static void divide(const BigInt& a, const BigInt& b, BigInt* quotient, BigInt* remainder);
  static double true_divide(const BigInt& a, const BigInt& b);  // a / b, nearest. Requires: b is not 0
  BigInt power(uint64_t n) const;

 private:
  using Limbs = std::vector<uint32_t>;
  void settle();  // drops zero limbs, refuses what is too long
  BigInt shifted_left(size_t bits) const;
  static int compare_limbs(const Limbs& a, const Limbs& b);
  static Limbs add_limbs(const Limbs& a, const Limbs& b);
  static Limbs subtract_limbs(const Limbs& a, const Limbs& b);  // Requires: a >= b
  static Limbs divide_limbs(Limbs a, const Limbs& b, Limbs* remainder);

  bool negative_ = false;
  Limbs limbs_;
};

}  // namespace minfer::chat::jinja
