// One field of "%..." or str.format: its layout and how values are laid out in it.
#pragma once

#include <cstdint>
#include <string>

#include "chat/jinja/bigint.h"
#include "chat/jinja/interp.h"

namespace minfer::chat::jinja {

// Wider fields and longer fractions than this are refused: no layout needs them.
constexpr int64_t kMaxFieldWidth = 1 << 20;
constexpr int64_t kMaxPrecision = 400;

struct Field {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false, zero = false;
  bool signed_given = false, no_negative_zero = false;  // of str.format: a sign, z
  char group = 0;                                       // , or _
  int64_t width = 0, precision = -1;
  char type = 0;
};

std::string grouped(const std::string& digits, char separator, size_t size = 3);   // 1234567 -> 1,234,567
std::string float_digits(double d, char type, int64_t precision, bool alternate);  // |d| by e, f, g (or E, F, G)
std::string int_digits(const BigInt& i, char type);                                // |i| by d, x, X, o, b

void pad_number(Interp& in, Text& out, const Field& field, bool negative, const std::string& prefix, std::string body);
void pad_text(Interp& in, Text& out, const Field& field, const Text& text);
void check_field(int64_t width, int64_t precision);

}  // namespace minfer::chat::jinja
