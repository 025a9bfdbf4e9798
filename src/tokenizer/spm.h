// SpmBpe: SentencePiece BPE with byte fallback, on text whose spaces are already U+2581.
// The neighbours whose joined text is the token of the highest score are merged first, the leftmost of equals. A
// character that is no token becomes its <0xNN> tokens, or the unknown token if one of them is missing; unknown tokens
// in a row are one. A token of type UNUSED takes part in merging but is undone into the parts it was made of. Time: O(n
// log n) in the characters of a piece. Errors:  encode() fails if neither serves. Threads: read-only after build();
// each call needs its own Scratch. Source: Kudo & Richardson 2018, arXiv:1808.06226.
#pragma once

#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/scratch.h"
#include "tokenizer/text_map.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_cutter.h"

namespace minfer {

class SpmBpe {
 public:
  // `vocab` must outlive this object.
  void build(const Vocabulary& vocab);

  // Appends the ids of `text`. Requires: text.size() < 2^32.
  Status encode(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const;

 private:
  Status encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;
  void merge(std::string_view piece, Scratch& scratch) const;
  void emit_unused(std::string_view text, const Scratch& scratch, std::vector<TokenId>& out) const;
  Status emit_fallback(std::string_view piece, std::vector<TokenId>& out) const;
  TokenId find(std::string_view text) const { return mergeable_.find(text, vocab_->texts); }

  const Vocabulary* vocab_ = nullptr;
  TextMap mergeable_;   // texts of ordinary, user-defined and unused tokens: what merging may make
  size_t longest_ = 0;  // bytes of the longest of them
  bool has_unused_ = false;
  WordCutter words_;  // of U+2581: words are merged alone
};

}  // namespace minfer
