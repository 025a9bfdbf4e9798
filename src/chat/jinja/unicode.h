// Code points of UTF-8 text and their properties as Python's str methods see them.
// Errors:  none; a byte that is not valid UTF-8 counts as one character of its own and has no properties.
// Source:  Unicode through utf8proc; Python's own lists where they differ (whitespace, printable).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace minfer::chat::jinja {

struct Char {
  uint32_t code;  // 0xDC80 + byte - 0x80 for an invalid byte (as Python's surrogateescape)
  uint8_t bytes;  // 1 to 4
};

Char decode(std::string_view s, size_t at);          // Requires: at < s.size()
Char decode_before(std::string_view s, size_t end);  // the character that ends at `end`; Requires: end > 0
size_t count_chars(std::string_view s);
size_t byte_offset(std::string_view s, size_t chars);  // offset of character `chars`, s.size() past the end
void append_utf8(std::string& out, uint32_t code);     // Requires: a code point, no surrogate
bool valid_utf8(std::string_view s);

bool is_space(uint32_t code);
bool is_printable(uint32_t code);
bool is_alpha(uint32_t code);
bool is_digit(uint32_t code);    // str.isdigit
bool is_decimal(uint32_t code);  // str.isdecimal
bool is_numeric(uint32_t code);  // str.isnumeric
bool is_upper(uint32_t code);
bool is_lower(uint32_t code);
bool is_title(uint32_t code);
bool is_cased(uint32_t code);
bool is_identifier_start(uint32_t code);
bool is_identifier_part(uint32_t code);

// Full case mappings (ß -> SS); the final-sigma rule is the caller's.
void append_upper(std::string& out, uint32_t code);
void append_lower(std::string& out, uint32_t code);
void append_title(std::string& out, uint32_t code);

}  // namespace minfer::chat::jinja
