// ByteBpe: byte-level byte-pair encoding of one pre-tokenized piece.
// The pair of neighbours with the lowest rank is merged first, the leftmost of equals, until no pair has a rank.
// Time: O(n log n) in the bytes of a piece.
// Errors:  build() refuses merges that are malformed or name tokens the vocabulary lacks.
// Threads: read-only after build(); each call needs its own Scratch.
// Source: Sennrich et al. 2016, arXiv:1508.07909; the order of merges as Hugging Face tokenizers apply it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/scratch.h"
#include "tokenizer/text_map.h"
#include "tokenizer/vocabulary.h"

namespace minfer {

class ByteBpe {
 public:
  // `vocab` must outlive this object. whole_words: a piece that is a token as a whole is that token.
  Status build(const Vocabulary& vocab, std::span<const std::string_view> merges, bool whole_words);

  // Appends the ids of `piece`. A byte without a token is left out, unless the vocabulary has a token of type kUnknown
  // for it. Requires: 0 < piece.size() < 2^32.
  void encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;

 private:
  struct Merge {
    uint64_t key;  // left << 32 | right
    uint32_t rank;
    TokenId id;
  };
  static constexpr uint64_t kFree = ~uint64_t{0};

  const Merge* find(TokenId left, TokenId right) const;
  size_t slot(uint64_t key) const { return hash_mix(key ^ seed_, seed_) & (merges_.size() - 1); }
  void merge_short(std::vector<Scratch::Symbol>& symbols) const;
  void merge_long(Scratch& scratch) const;

  const Vocabulary* vocab_ = nullptr;
  uint64_t seed_ = 0;
  std::vector<Merge> merges_;  // open addressing
  TextMap words_;              // bytes -> id of ordinary tokens; empty unless whole_words
  bool whole_words_ = false;
};

}  // namespace minfer
