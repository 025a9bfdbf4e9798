// Several byte strings looked for at once in a stream that comes piece by piece (Aho and Corasick).
// Layout:  a trie with failure links; a node's edges are sorted. A whole stream costs time linear in its bytes.
// Threads: immutable once made; each stream holds its own State.
// Source:  Aho, Corasick, "Efficient string matching: an aid to bibliographic search", 1975.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace minfer::chat {

class PatternSet {
 public:
  using State = uint32_t;
  static constexpr State kStart = 0;
  static constexpr int kNone = -1;

  PatternSet() : nodes_(1) {}
  // Requires: no pattern is empty. A pattern given twice keeps its first index.
  explicit PatternSet(const std::vector<std::string_view>& patterns);

  State step(State s, uint8_t byte) const;
  // The longest pattern that ends here, the index as given; kNone when none does.
  int match(State s) const { return nodes_[s].match; }
  size_t length(int pattern) const { return lengths_[static_cast<size_t>(pattern)]; }
  // How many of the last bytes could still become (part of) a pattern.
  size_t held(State s) const { return nodes_[s].depth; }
  bool empty() const { return lengths_.empty(); }

 private:
  struct Node {
    std::vector<std::pair<uint8_t, State>> edges;  // by byte
    State fail = 0;
    uint32_t depth = 0;
    int match = kNone;
  };
  State child(State s, uint8_t byte) const;  // kStart when there is none

  std::vector<Node> nodes_;
  std::vector<size_t> lengths_;
};

}  // namespace minfer::chat
