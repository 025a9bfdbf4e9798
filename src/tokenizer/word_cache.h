// WordCache: what short words were encoded to, so that common words are merged once.
// Layout:  direct-mapped; an entry is one cache line: the word's bytes (at most 22) and its ids (at most 10).
// Threads: one owner (it lives in a Scratch, see scratch.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/text_map.h"
#include "tokenizer/vocab.h"

namespace minfer {

class WordCache {
 public:
  static constexpr size_t kMaxBytes = 22;
  static constexpr size_t kMaxIds = 10;

  // Appends the word's ids to `out` if they are known.
  bool find(std::string_view word, std::vector<TokenId>& out) const {
    if (word.size() > kMaxBytes || entries_.empty()) return false;
    const Entry& e = entries_[slot(word)];
    if (e.bytes != word.size() || std::memcmp(e.text, word.data(), word.size()) != 0) return false;
    out.insert(out.end(), e.ids, e.ids + e.n_ids);
    return true;
  }
  // Requires: word is not empty.
  void insert(std::string_view word, std::span<const TokenId> ids) {
    if (word.size() > kMaxBytes || ids.size() > kMaxIds) return;
    if (entries_.empty()) entries_.resize(kSlots);
    Entry& e = entries_[slot(word)];
    e.bytes = static_cast<uint8_t>(word.size());
    e.n_ids = static_cast<uint8_t>(ids.size());
    std::memcpy(e.text, word.data(), word.size());
    std::memcpy(e.ids, ids.data(), ids.size() * sizeof(TokenId));
  }

 private:
  // 4096 entries of 64 bytes: within a core's L2 cache.
  static constexpr size_t kSlots = 4096;
  struct Entry {
    uint8_t bytes = 0;
    uint8_t n_ids = 0;
    char text[kMaxBytes] = {};
    TokenId ids[kMaxIds] = {};
  };
  static_assert(sizeof(Entry) == 64);

  size_t slot(std::string_view word) const { return hash_bytes(word, seed_) % kSlots; }

  uint64_t seed_ = hash_seed();
  std::vector<Entry> entries_;
};

}  // namespace minfer
