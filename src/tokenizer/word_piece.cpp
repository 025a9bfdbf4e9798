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
  begin_texts_.resize(vocab.size());
  inside_texts_.resize(vocab.size());
  begin_.reserve(vocab.size());
  inside_.reserve(vocab.size());
  const auto add = [&](TextMap& map, std::vector<std::string_view>& texts, size_t i, std::string_view text) {
    if (text.empty()) return;
    texts[i] = text;
    longest_ = std::max(longest_, text.size());
    map.insert(text, static_cast<TokenId>(i), texts);
  };
  for (size_t i = 0; i < vocab.size(); ++i) {
    const std::string_view text = vocab.texts[i];
    if (!vocab.usable(static_cast<TokenId>(i))) continue;
    const std::string_view mark = rules.continuing.empty() ? kSpaceMark : std::string_view(rules.continuing);
    const bool marked = text.substr(0, mark.size()) == mark;
    const std::string_view rest = marked ? text.substr(mark.size()) : text;
    if (rules.continuing.empty()) {  // GGUF: what begins words is marked
      if (marked)
        add(begin_, begin_texts_, i, rest);
      else
        add(inside_, inside_texts_, i, rest);
    } else {
      add(begin_, begin_texts_, i, text);  // a text may begin with "##" too
      if (marked) add(inside_, inside_texts_, i, rest);
    }
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
    const auto& texts = done == 0 ? begin_texts_ : inside_texts_;
    TokenId id = kNoToken;
    size_t last = n;
    for (; last > done; --last) {
      if (ends[last - 1] - begin > longest_) continue;
      id = map.find(word.substr(begin, ends[last - 1] - begin), texts);
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
