// Charsmap: SentencePiece's precompiled table of replacements ("nmt_nfkc" and the like).
// Layout:  u32 n; n bytes of a double-array trie of u32 units (little endian); the replacements, each ended by NUL.
// Errors:  make() refuses a blob that cannot be one. Lookups in a damaged trie end; they never leave the blob.
// Threads: read-only. Source: SentencePiece's normalizer and Darts-clone's unit format.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "minfer/error.h"

namespace minfer {

class Charsmap {
 public:
  static Result<Charsmap> make(std::span<const uint8_t> blob);

  struct Match {
    size_t bytes = 0;  // of the text; 0: nothing matches
    std::string_view to;
  };
  // The longest, or the shortest, entry that begins `text`.
  Match longest(std::string_view text) const { return find(text, true); }
  Match shortest(std::string_view text) const { return find(text, false); }

 private:
  Match find(std::string_view text, bool longest) const;
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace minfer
