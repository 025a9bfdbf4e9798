// SpecialMatcher: finds the texts of control and user-defined tokens in a text, leftmost first, the longest there.
// Layout:  a trie over bytes; edges in one open-addressing table keyed by (node, byte).
// Errors:  build() refuses more special text than its table can address (16 MiB).
// Threads: read-only after build().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace minfer {

// Where control tokens may be found: ascending, disjoint, not touching (joined where they would).
struct ByteRange {
  size_t begin, end;
};

struct SpecialMatch {
  size_t begin, end;
  TokenId id;
};

class SpecialMatcher {
 public:
  Status build(const Vocabulary& vocab);

  // The first match at or after `from`. User-defined tokens match anywhere, others only inside one of `markup`.
  // Time: O(bytes scanned), times the longest special text (at most 256) where the text nearly matches.
  std::optional<SpecialMatch> next(std::string_view text, size_t from, const std::vector<ByteRange>& markup) const;

 private:
  struct Terminal {
    TokenId anywhere = kNoToken;  // a user-defined token ends here
    TokenId control = kNoToken;   // a control token ends here
  };
  uint32_t child(uint32_t node, unsigned char byte) const;  // 0 if there is none
  uint32_t add_child(uint32_t node, unsigned char byte);

  std::array<bool, 256> starts_{};
  std::vector<Terminal> terminals_;  // by node; node 0 is the root
  std::vector<uint64_t> edges_;      // key (node << 8 | byte) + 1 in the upper bits, child below; 0 = free
  uint64_t seed_ = 0;
};

}  // namespace minfer
