// Pattern: a regular expression, compiled to a deterministic automaton over classes of code points.
// It finds what a backtracking engine finds (the first alternative that matches, quantifiers greedy or lazy as written)
// in one pass from where a match starts: no recursion, no backtracking.
// Understood:  literals; . [...] [^...] && ranges \d \D \s \S \w \W \p{..} \P{..} \n \r \t \f \v \xHH \x{..} \uHHHH;
//              (...) (?:...) (?i:...) |; ? * + {n} {n,} {n,m}, each also lazy; possessive where it makes no difference;
//              lookahead of one character (?=X) (?!X); $ (the end of a line).
// Everything else is refused by name, never taken to mean something else.
// Text:    bytes that are no UTF-8 are each read as an unassigned code point.
// Errors:  compile() only. Threads: read-only after compile().
// Source:  syntax and classes as Oniguruma's Ruby syntax, which Hugging Face's tokenizers use; Thompson 1968.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "minfer/error.h"

namespace minfer {

class Pattern {
 public:
  static constexpr size_t kNoMatch = ~size_t{0};

  static Result<Pattern> compile(std::string_view regex);

  // Some text has a match of no characters.
  bool can_be_empty() const { return can_be_empty_; }

  // The end of the match that begins at `pos`, or kNoMatch. Adds the number of bytes looked at to `work`.
  // Requires: pos <= text.size().
  size_t match(std::string_view text, size_t pos, uint64_t& work) const;

 private:
  friend class PatternCompiler;

  uint8_t class_of(uint32_t cp) const { return blocks_[static_cast<size_t>(block_of_[cp >> 8]) << 8 | (cp & 0xff)]; }

  // next_[row + class]: next row << 1 | "a match ends here, before this character". A state's row is its number times
  // n_classes_; state 0 is dead, state 1 the start. The last class is the end of the text.
  std::vector<uint32_t> next_;
  uint32_t n_classes_ = 0;
  bool can_be_empty_ = false;
  uint8_t broken_class_ = 0;        // of a byte that is no UTF-8
  uint8_t ascii_[128] = {};         // class by code point
  std::vector<uint16_t> block_of_;  // [0x1100] code point / 256 -> block
  std::vector<uint8_t> blocks_;     // [n_blocks * 256] class
};

}  // namespace minfer
