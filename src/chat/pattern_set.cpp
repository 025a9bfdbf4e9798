// Building the trie and its failure links, breadth first.
#include "chat/pattern_set.h"

#include <algorithm>

namespace minfer::chat {

PatternSet::PatternSet(const std::vector<std::string_view>& patterns) : nodes_(1) {
  for (size_t p = 0; p < patterns.size(); ++p) {
    State s = kStart;
    for (const char c : patterns[p]) {
      const auto byte = static_cast<uint8_t>(c);
      State next = child(s, byte);
      if (next == kStart) {
        next = static_cast<State>(nodes_.size());
        auto& edges = nodes_[s].edges;
        const auto less = [](const auto& edge, uint8_t b) { return edge.first < b; };
        edges.insert(std::lower_bound(edges.begin(), edges.end(), byte, less), {byte, next});
        const uint32_t depth = nodes_[s].depth + 1;
        nodes_.push_back({.depth = depth});
      }
      s = next;
    }
    if (nodes_[s].match == kNone) nodes_[s].match = static_cast<int>(p);
    lengths_.push_back(patterns[p].size());
  }
  std::vector<State> queue = {kStart};
  for (size_t head = 0; head < queue.size(); ++head) {
    const State s = queue[head];
    for (const auto& [byte, next] : nodes_[s].edges) {
      // A child of the start fails to the start; every other one to where its parent's failure goes with this byte.
      nodes_[next].fail = s == kStart ? kStart : step(nodes_[s].fail, byte);
      if (nodes_[next].match == kNone) nodes_[next].match = nodes_[nodes_[next].fail].match;
      queue.push_back(next);
    }
  }
}

PatternSet::State PatternSet::child(State s, uint8_t byte) const {
  const auto& edges = nodes_[s].edges;
  const auto less = [](const auto& edge, uint8_t b) { return edge.first < b; };
  const auto it = std::lower_bound(edges.begin(), edges.end(), byte, less);
  return it != edges.end() && it->first == byte ? it->second : kStart;
}

PatternSet::State PatternSet::step(State s, uint8_t byte) const {
  for (;;) {
    const State next = child(s, byte);
    if (next != kStart || s == kStart) return next;
    s = nodes_[s].fail;
  }
}

}  // namespace minfer::chat
