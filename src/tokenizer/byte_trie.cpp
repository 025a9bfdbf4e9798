// See byte_trie.h.
#include "tokenizer/byte_trie.h"

#include <bit>

#include "base/error.h"

namespace minfer {

Status ByteTrie::reserve(size_t bytes) {
  constexpr size_t kMaxNodes = size_t{1} << 24;
  if (bytes >= kMaxNodes) {
    return make_error(ErrorCode::kUnsupported, "[tokenizer] tokens: found {} bytes of text, expected fewer than {}",
                      bytes, kMaxNodes);
  }
  seed_ = hash_seed();
  edges_.assign(std::bit_ceil(bytes * 2 + 2), 0);
  return {};
}

uint32_t ByteTrie::add(std::string_view text) {
  uint32_t node = 0;
  for (const char c : text) {
    const uint64_t key = edge_key(node, static_cast<unsigned char>(c));
    size_t i = slot(key);
    while (edges_[i] != 0 && (edges_[i] & ~kChildMask) != key) i = (i + 1) & (edges_.size() - 1);
    if (edges_[i] == 0) edges_[i] = key | n_nodes_++;
    node = static_cast<uint32_t>(edges_[i] & kChildMask);
  }
  return node;
}

}  // namespace minfer
