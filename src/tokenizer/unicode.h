// Code points, their classes and NFC, as pre-tokenizers need them.
// Bytes that are no part of well-formed UTF-8 (overlong forms and surrogates included) are read as one unit per byte of
// class kNone, so any input can be scanned and every scan moves forward.
// Source: Unicode 16 general categories (unicode_categories.inc); White_Space; normal forms per Unicode Annex 15
// through
//         utf8proc.
// Threads: read-only after the first call of char_classes().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/char_set.h"

namespace minfer {

// One bit per class, so that a set of classes is tested with one `and`.
enum CharClass : uint8_t {
  kNone = 0,         // control, format, unassigned, private use, broken bytes
  kSpace = 1,        // \s
  kUpper = 2,        // Lu, Lt
  kLower = 4,        // Ll
  kOtherLetter = 8,  // Lm, Lo
  kMark = 16,        // M
  kNumber = 32,      // N
  kPunct = 64,       // P
  kSymbol = 128,     // S
  kLetter = kUpper | kLower | kOtherLetter,
};

// Unicode's general categories, in the order of their names.
enum Category : uint8_t {
  kCc,
  kCf,
  kCo,
  kCs,
  kLl,
  kLm,
  kLo,
  kLt,
  kLu,
  kMc,
  kMe,
  kMn,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPe,
  kPf,
  kPi,
  kPo,
  kPs,
  kSc,
  kSk,
  kSm,
  kSo,
  kZl,
  kZp,
  kZs,
};

struct CategoryRange {
  uint32_t first, last;
  Category category;
};

std::span<const CategoryRange> category_ranges();   // ascending; unassigned code points stand in none
std::string_view category_name(Category category);  // "Lu"
std::span<const CodeRange> white_space_ranges();

// [0x110000] class of every code point; built on the first call.
const uint8_t* char_classes();

struct CodePoint {
  uint32_t value;  // 0xfffd for a broken byte
  uint32_t bytes;  // 1..4
  bool valid;
};

// Reads the unit at text[pos]. Requires: pos < text.size().
inline CodePoint read_code_point(std::string_view text, size_t pos) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[pos + i])); };
  const uint32_t b0 = byte(0);
  if (b0 < 0x80) return {b0, 1, true};
  const size_t left = text.size() - pos;
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  if (b0 >= 0xc2 && b0 < 0xe0 && left >= 2 && tail(1)) return {(b0 & 0x1fu) << 6 | (byte(1) & 0x3fu), 2, true};
  if ((b0 & 0xf0u) == 0xe0 && left >= 3 && tail(1) && tail(2)) {
    const uint32_t cp = (b0 & 0xfu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
    if (cp >= 0x800 && (cp < 0xd800 || cp > 0xdfff)) return {cp, 3, true};
  }
  if (b0 >= 0xf0 && b0 < 0xf5 && left >= 4 && tail(1) && tail(2) && tail(3)) {
    const uint32_t cp = (b0 & 7u) << 18 | (byte(1) & 0x3fu) << 12 | (byte(2) & 0x3fu) << 6 | (byte(3) & 0x3fu);
    if (cp >= 0x10000 && cp <= 0x10ffff) return {cp, 4, true};
  }
  return {0xfffd, 1, false};
}

// Appends the UTF-8 form. Requires: cp is a scalar value.
void append_utf8(std::string& out, uint32_t cp);

// True if `text` is its own NFC for certain: it has no code point of U+0300 or above.
bool surely_nfc(std::string_view text);

struct NormalForm {
  bool compose = true;      // C, else D
  bool compatible = false;  // K
};

// A normal form of the well-formed parts of `text`, broken bytes as they are. O(n log n) at worst.
std::string to_normal_form(std::string_view text, NormalForm form);

// NFC of the well-formed parts of `text`, broken bytes as they are. O(n log n) at worst.
std::string to_nfc(std::string_view text);

}  // namespace minfer
