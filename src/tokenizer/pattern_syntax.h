// The syntax tree of a regular expression (see pattern.h) and its parser.
// Errors:  what is not understood, by name and byte offset.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/char_set.h"

namespace minfer {

struct PatternNode {
  enum class Kind : uint8_t { kEmpty, kSet, kConcat, kAlternate, kRepeat, kAhead };
  static constexpr uint32_t kUnbounded = ~uint32_t{0};

  Kind kind = Kind::kEmpty;
  CharSet set;                // kSet: one character of it. kAhead: the next character is one of it,
  bool at_end = false;        // kAhead: or the text ends here
  bool greedy = true;         // kRepeat
  bool possessive = false;    // kRepeat
  uint32_t min = 0, max = 0;  // kRepeat
  std::vector<std::unique_ptr<PatternNode>> parts;  // kConcat, kAlternate in order; kRepeat: the one repeated
};

Result<std::unique_ptr<PatternNode>> parse_pattern(std::string_view regex);

}  // namespace minfer
