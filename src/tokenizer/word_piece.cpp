// See word_piece.h.
#include "tokenizer/word_piece.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace minfer {

Status WordPiece::build(const Vocabulary& vocab, const TextRules& rules) {
  vocab_ = &vocab;
  if (vocab.unk == kNoToken) {
    return make_error(ErrorCode::kCorrupt, "[tokenizer] unknown token: found none, expected one (WordPiece needs it)");
  }
  if (rules.max_word_chars > kMaxWordChars) {
    return make_error(ErrorCode::kUnsupported, "[tokenizer] longest word: {} characters, expected at most {}",
                      rules.max_word_chars, kMaxWordChars);
  }
  max_word_chars_ = rules.max_word_chars;
  plain_.assign(vocab.texts.begin(), vocab.texts.end());
  begin_.reserve(vocab.size());
  inside_.reserve(vocab.size());
  for (size_t i = 0; i < vocab.size(); ++i) {
    std::string_view& text = plain_[i];
    if (text.empty() || is_special(vocab.types[i])) continue;
    bool inside;
    if (rules.continuing.empty()) {  // GGUF: words begin with U+2581
      inside = text.substr(0, kSpaceMark.size()) != kSpaceMark;
      if (!inside) text.remove_prefix(kSpaceMark.size());
    } else {
      inside = text.size() > rules.continuing.size() && text.substr(0, rules.continuing.size()) == rules.continuing;
      if (inside) text.remove_prefix(rules.continuing.size());
    }
    if (text.empty()) continue;
    longest_ = std::max(longest_, text.size());
    (inside ? inside_ : begin_).insert(text, static_cast<TokenId>(i), plain_);
  }
  return {};
}

void WordPiece::encode(std::string_view word, std::vector<TokenId>& out) const {
  size_t ends[kMaxWordChars];  // of the word's characters
  size_t n = 0;
  for (size_t pos = 0; pos < word.size();) {
    pos += read_code_point(word, pos).bytes;
    if (n == max_word_chars_) {
      out.push_back(vocab_->unk);
      return;
    }
    ends[n++] = pos;
  }
  const size_t first = out.size();
  size_t begin = 0;
  for (size_t done = 0; done < n;) {
    const TextMap& map = done == 0 ? begin_ : inside_;
    TokenId id = kNoToken;
    size_t last = n;
    for (; last > done; --last) {
      if (ends[last - 1] - begin > longest_) continue;
      id = map.find(word.substr(begin, ends[last - 1] - begin), plain_);
      if (id != kNoToken) break;
    }
    if (id == kNoToken) {
      out.resize(first);
      out.push_back(vocab_->unk);
      return;
    }
    out.push_back(id);
    begin = ends[last - 1];
    done = last;
  }
}

}  // namespace minfer
