// ByteTrie: byte strings to ids, walked a byte at a time.
// Layout:  edges in one open-addressing table keyed by (node, byte); node 0 is the root.
// Errors:  reserve() refuses more bytes than the table can address. Threads: read-only once filled.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/text_map.h"

namespace minfer {

class ByteTrie {
 public:
  // Room for strings of `bytes` bytes in all. Requires: before any add().
  Status reserve(size_t bytes);
  // The node at which `text` ends; made where it is new.
  uint32_t add(std::string_view text);
  // The node below, or 0.
  uint32_t child(uint32_t node, unsigned char byte) const {
    const uint64_t key = edge_key(node, byte);
    for (size_t i = slot(key);; i = (i + 1) & (edges_.size() - 1)) {
      if (edges_[i] == 0) return 0;
      if ((edges_[i] & ~kChildMask) == key) return static_cast<uint32_t>(edges_[i] & kChildMask);
    }
  }
  uint32_t size() const { return n_nodes_; }

 private:
  // ((node << 8 | byte) + 1) << 31 | child: a node has at most 24 bits, one for every byte of the strings.
  static constexpr int kChildBits = 31;
  static constexpr uint64_t kChildMask = (uint64_t{1} << kChildBits) - 1;
  static uint64_t edge_key(uint32_t node, unsigned char byte) {
    return ((static_cast<uint64_t>(node) << 8 | byte) + 1) << kChildBits;
  }
  size_t slot(uint64_t key) const { return hash_mix(key ^ seed_, seed_) & (edges_.size() - 1); }

  std::vector<uint64_t> edges_ = {0, 0};
  uint64_t seed_ = 1;
  uint32_t n_nodes_ = 1;
};

}  // namespace minfer
