// SpecialMatcher: finds the texts of control and user-defined tokens in a text, leftmost first, the longest there.
// Errors:  build() refuses more special text than its trie can address (16 MiB).
// Threads: read-only after build().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/byte_trie.h"
#include "tokenizer/vocabulary.h"

namespace minfer {

// Where control tokens may be found: ascending, disjoint, not touching (joined where they would).
struct ByteRange {
  size_t begin, end;
};

struct SpecialToken {
  std::string text;
  TokenId id = kNoToken;
  bool anywhere = false;  // user-defined: found anywhere; else only in markup
  bool lstrip = false, rstrip = false, single_word = false;
};

struct SpecialMatch {
  size_t begin, end;  // with the white space that the token swallows
  TokenId id;
};

class SpecialMatcher {
 public:
  Status build(std::vector<SpecialToken> tokens);
  bool empty() const { return tokens_.empty(); }

  // The first match at or after `from`. User-defined tokens match anywhere, others only inside one of `markup`.
  // Time: O(bytes scanned), times the longest special text (at most 256) where the text nearly matches.
  std::optional<SpecialMatch> next(std::string_view text, size_t from, const std::vector<ByteRange>& markup) const;

 private:
  struct Terminal {
    int32_t anywhere = -1;  // index of the user-defined token that ends here
    int32_t control = -1;   // of the other kind
  };
  std::vector<SpecialToken> tokens_;
  std::array<bool, 256> starts_{};
  ByteTrie trie_;
  std::vector<Terminal> terminals_;  // by node
};

}  // namespace minfer
