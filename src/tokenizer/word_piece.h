// WordPiece: BERT's tokens. Of a word the longest token that begins it is taken, then the longest that continues it,
// and so on; a word that cannot be covered, or that is very long, is the unknown token. Errors:  build() refuses a
// vocabulary without an unknown token and a word limit beyond kMaxWordChars. Time: O(characters of a word squared),
// words being limited. Threads: read-only after build(). Source: Devlin et al. 2018, arXiv:1810.04805 (the reference
// tokenizer).
#pragma once

#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/text_map.h"
#include "tokenizer/vocabulary.h"

namespace minfer {

class WordPiece {
 public:
  static constexpr size_t kMaxWordChars = 1000;

  // `vocab` must outlive this object.
  Status build(const Vocabulary& vocab, const TextRules& rules);
  void encode(std::string_view word, std::vector<TokenId>& out) const;

 private:
  const Vocabulary* vocab_ = nullptr;
  size_t max_word_chars_ = 0;
  size_t longest_ = 0;                                        // bytes of the longest token
  std::vector<std::string_view> begin_texts_, inside_texts_;  // [n_vocab] without what marks their place in a word
  TextMap begin_, inside_;
};

}  // namespace minfer
