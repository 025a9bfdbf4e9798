// Bpe: byte-pair encoding of one pre-tokenized piece, from byte symbols (GPT-2 and most) or from characters (Gemma;
// Llama 2 as Hugging Face has it). The pair of neighbours with the lowest rank is merged first, the leftmost of equals,
// until no pair has a rank. Time: O(n log n) in the bytes of a piece. Errors:  build() refuses merges that are
// malformed or name tokens the vocabulary lacks. Threads: read-only after build(); each call needs its own Scratch.
// Source: Sennrich et al. 2016, arXiv:1508.07909; the order of merges as Hugging Face tokenizers apply it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/scratch.h"
#include "tokenizer/text_map.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_cutter.h"

namespace minfer {

class Bpe {
 public:
  // `vocab` must outlive this object. Of the rules it takes the kind, ignore_merges, byte_fallback and fuse_unk.
  Status build(const Vocabulary& vocab, const VocabData& data, const TextRules& rules);

  // Appends the ids of `piece`. A byte without a token is left out, unless the vocabulary has a token of type kUnknown
  // for it; a character without a token is the tokens of its bytes, or the unknown token, or left out.
  // Requires: 0 < piece.size() < 2^32.
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
  Status add_merge(size_t rank, std::string_view left, std::string_view right, std::string& joined);
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;
  void start_from_bytes(std::string_view piece, std::vector<Scratch::Symbol>& symbols) const;
  void start_from_characters(std::string_view piece, std::vector<Scratch::Symbol>& symbols) const;
  void merge_short(std::vector<Scratch::Symbol>& symbols) const;
  void merge_long(Scratch& scratch) const;

  const Vocabulary* vocab_ = nullptr;
  uint64_t seed_ = 0;
  std::vector<Merge> merges_;  // open addressing
  bool whole_words_ = false;
  TextMap words_;  // bytes -> id of ordinary tokens; empty unless whole_words_
  bool from_characters_ = false, byte_fallback_ = false, fuse_unk_ = false;
  WordCutter cutter_;  // from_characters_
};

}  // namespace minfer
