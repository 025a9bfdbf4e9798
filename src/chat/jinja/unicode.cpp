// UTF-8 steps and character properties.
#include "chat/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

namespace minfer::chat::jinja {

namespace {

struct SpecialCase {
  uint32_t code;
  const char* upper;
  const char* title;
};

constexpr SpecialCase kSpecialCases[] = {
#include "chat/jinja/special_casing.inc"
};

const SpecialCase* special_case(uint32_t code) {
  const auto* it = std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), code,
                                    [](const SpecialCase& s, uint32_t c) { return s.code < c; });
  return it != std::end(kSpecialCases) && it->code == code ? it : nullptr;
}

bool continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes that decode() invented a code for go back as they were.
void append_any(std::string& out, uint32_t code) {
  if (code >= 0xDC80 && code <= 0xDCFF) {
    out += static_cast<char>(code - 0xDC00);
  } else {
    append_utf8(out, code);
  }
}

int category(uint32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

}  // namespace

Char decode(std::string_view s, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(s[at + i])); };
  const uint32_t b0 = byte(0);
  if (b0 < 0x80) return {b0, 1};
  const Char invalid{0xDC00 + b0, 1};
  const uint8_t n = b0 >= 0xF0 ? 4 : b0 >= 0xE0 ? 3 : 2;
  if (b0 < 0xC2 || b0 > 0xF4 || at + n > s.size()) return invalid;
  uint32_t code = b0 & (0x7Fu >> n);
  for (uint8_t i = 1; i < n; ++i) {
    if (!continuation(s[at + i])) return invalid;
    code = (code << 6) | (byte(i) & 0x3F);
  }
  const bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return invalid;
  return {code, n};
}

Char decode_before(std::string_view s, size_t end) {
  for (size_t n = 1; n <= 4 && n <= end; ++n) {
    if (continuation(s[end - n])) continue;
    const Char c = decode(s, end - n);
    if (c.bytes == n) return c;
    break;
  }
  return {0xDC00 + static_cast<uint32_t>(static_cast<unsigned char>(s[end - 1])), 1};
}

size_t count_chars(std::string_view s) {
  size_t n = 0;
  for (size_t at = 0; at < s.size(); ++n) at += static_cast<unsigned char>(s[at]) < 0x80 ? 1 : decode(s, at).bytes;
  return n;
}

size_t byte_offset(std::string_view s, size_t chars) {
  size_t at = 0;
  for (; chars > 0 && at < s.size(); --chars) at += decode(s, at).bytes;
  return at;
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

bool valid_utf8(std::string_view s) {
  for (size_t at = 0; at < s.size();) {
    const Char c = decode(s, at);
    if (c.code >= 0xDC80 && c.code <= 0xDCFF) return false;
    at += c.bytes;
  }
  return true;
}

bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(uint32_t code) {
  if (code == ' ') return true;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

bool is_alpha(uint32_t code) {
  const int c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }

bool is_digit(uint32_t code) {
  if (is_decimal(code)) return true;
  // Numeric_Type=Digit: superscripts, subscripts and enclosed digits.
  return code == 0xB2 || code == 0xB3 || code == 0xB9 || code == 0x2070 || (code >= 0x2074 && code <= 0x2079) ||
         (code >= 0x2080 && code <= 0x2089) || (code >= 0x2460 && code <= 0x2468) ||
         (code >= 0x2474 && code <= 0x247C) || (code >= 0x2488 && code <= 0x2490) || code == 0x24EA ||
         (code >= 0x24F5 && code <= 0x24FD) || code == 0x24FF || (code >= 0x2776 && code <= 0x277E) ||
         (code >= 0x2780 && code <= 0x2788) || (code >= 0x278A && code <= 0x2792) || (code >= 0x1369 && code <= 0x1371);
}

bool is_numeric(uint32_t code) {
  const int c = category(code);
  return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool is_upper(uint32_t code) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(code)) != 0; }
bool is_lower(uint32_t code) { return utf8proc_islower(static_cast<utf8proc_int32_t>(code)) != 0; }
bool is_title(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_LT; }
bool is_cased(uint32_t code) { return is_upper(code) || is_lower(code) || is_title(code); }

bool is_identifier_start(uint32_t code) {
  return code == '_' || is_alpha(code) || category(code) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(uint32_t code) {
  if (is_identifier_start(code)) return true;
  const int c = category(code);
  return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC ||
         c == UTF8PROC_CATEGORY_PC;
}

void append_upper(std::string& out, uint32_t code) {
  if (const SpecialCase* s = special_case(code)) {
    out += s->upper;
  } else {
    append_any(out, static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
  }
}

void append_lower(std::string& out, uint32_t code) {
  if (code == 0x130) {
    out += "i\xcc\x87";
  } else {
    append_any(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
}

void append_title(std::string& out, uint32_t code) {
  if (const SpecialCase* s = special_case(code)) {
    out += s->title;
  } else {
    append_any(out, static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
  }
}

}  // namespace minfer::chat::jinja
