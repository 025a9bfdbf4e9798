// WordCutter: where a text with U+2581 for its spaces can be cut without changing how it is merged.
// A cut stands before a run of marks, unless some token has a mark right after the same byte. Words are then merged
// alone, and the common ones once (word_cache.h).
// Threads: read-only once filled.
#pragma once

#include <array>
#include <string_view>

#include "tokenizer/vocabulary.h"

namespace minfer {

class WordCutter {
 public:
  // A text that merging may make.
  void add(std::string_view token) {
    for (size_t at = token.find(kSpaceMark, 1); at != std::string_view::npos; at = token.find(kSpaceMark, at + 1)) {
      if (!mark_before(token, at)) joins_[static_cast<unsigned char>(token[at - 1])] = true;
    }
  }
  // End of the word that starts at `pos`.
  size_t word_end(std::string_view text, size_t pos) const {
    for (size_t at = text.find(kSpaceMark, pos + 1); at != std::string_view::npos; at = text.find(kSpaceMark, at + 1)) {
      if (!mark_before(text, at) && !joins_[static_cast<unsigned char>(text[at - 1])]) return at;
    }
    return text.size();
  }

 private:
  // U+2581 stands right before `pos`. (Its last bytes can be those of no other character.)
  static bool mark_before(std::string_view text, size_t pos) {
    return pos >= kSpaceMark.size() && text.substr(pos - kSpaceMark.size(), kSpaceMark.size()) == kSpaceMark;
  }
  std::array<bool, 256> joins_{};
};

}  // namespace minfer
