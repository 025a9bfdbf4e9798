// Unigram: SentencePiece's unigram model: of all ways to cut a piece into tokens the one whose scores add up to most;
// of equals the one found first (by the start of the last token, then its length).
// A character that is no token costs 10 more than the worst token; such characters in a row are one unknown token, or
// the tokens of their bytes.
// Time: O(bytes * the longest token), which is refused beyond kMaxTokenBytes. Threads: read-only after build().
// Source: Kudo 2018, arXiv:1804.10959; the Viterbi of Hugging Face tokenizers and of SentencePiece.
#pragma once

#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/byte_trie.h"
#include "tokenizer/scratch.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_cutter.h"

namespace minfer {

class Unigram {
 public:
  static constexpr size_t kMaxTokenBytes = 1024;  // the longest in use has some 50

  // `vocab` must outlive this object.
  Status build(const Vocabulary& vocab, bool byte_fallback);

  // Appends the ids of `piece`. Requires: 0 < piece.size() < 2^32.
  Status encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;

 private:
  Status encode_word(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;
  Status emit_unknown(std::string_view text, std::vector<TokenId>& out) const;

  const Vocabulary* vocab_ = nullptr;
  ByteTrie trie_;
  std::vector<TokenId> ends_;  // by node
  double unknown_score_ = 0;
  bool byte_fallback_ = false;
  bool cuts_ = false;  // U+2581 is a token, so no run of unknown characters reaches over it
  WordCutter cutter_;
};

}  // namespace minfer
