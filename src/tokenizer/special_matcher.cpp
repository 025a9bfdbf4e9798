// See special_matcher.h.
#include "tokenizer/special_matcher.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/char_set.h"
#include "tokenizer/unicode.h"

namespace minfer {
namespace {

const CharSet& word_characters() {
  static const CharSet set = CharSet::unicode_word();
  return set;
}

// The character that ends right before `pos`; broken bytes are one each. Requires: pos > 0.
CodePoint read_before(std::string_view text, size_t pos) {
  for (size_t bytes = 2; bytes <= 4 && bytes <= pos; ++bytes) {
    const CodePoint c = read_code_point(text, pos - bytes);
    if (c.valid && c.bytes == bytes) return c;
  }
  return read_code_point(text, pos - 1);
}

bool is_space(const CodePoint& c) { return c.valid && (char_classes()[c.value] & kSpace) != 0; }
bool is_word(const CodePoint& c) { return c.valid && word_characters().contains(c.value); }

size_t skip_spaces(std::string_view text, size_t pos) {
  while (pos < text.size()) {
    const CodePoint c = read_code_point(text, pos);
    if (!is_space(c)) break;
    pos += c.bytes;
  }
  return pos;
}

size_t skip_spaces_back(std::string_view text, size_t pos, size_t least) {
  while (pos > least) {
    const CodePoint c = read_before(text, pos);
    if (!is_space(c)) break;
    pos -= c.bytes;
  }
  return pos;
}

}  // namespace

Status SpecialMatcher::build(std::vector<SpecialToken> tokens) {
  tokens_ = std::move(tokens);
  std::erase_if(tokens_, [](const SpecialToken& t) { return t.text.empty(); });
  size_t bytes = 0;
  for (const SpecialToken& t : tokens_) bytes += t.text.size();
  MINFER_TRY(trie_.reserve(bytes));
  for (size_t i = 0; i < tokens_.size(); ++i) {
    starts_[static_cast<unsigned char>(tokens_[i].text[0])] = true;
    const uint32_t node = trie_.add(tokens_[i].text);
    if (node >= terminals_.size()) terminals_.resize(node + 1);
    int32_t& slot = tokens_[i].anywhere ? terminals_[node].anywhere : terminals_[node].control;
    if (slot < 0) slot = static_cast<int32_t>(i);
  }
  terminals_.resize(trie_.size());
  return {};
}

std::optional<SpecialMatch> SpecialMatcher::next(std::string_view text, size_t from,
                                                 const std::vector<ByteRange>& markup) const {
  if (tokens_.empty()) return std::nullopt;
  auto range = std::partition_point(markup.begin(), markup.end(), [&](const ByteRange& r) { return r.end <= from; });
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<unsigned char>(text[begin])]) continue;
    while (range != markup.end() && range->end <= begin) ++range;
    const size_t control_end = range != markup.end() && range->begin <= begin ? range->end : 0;
    int32_t best = -1;
    size_t best_end = begin;
    uint32_t node = 0;
    for (size_t end = begin; end < text.size();) {
      node = trie_.child(node, static_cast<unsigned char>(text[end]));
      if (node == 0) break;
      ++end;
      const Terminal& t = terminals_[node];
      const int32_t found = t.control >= 0 && end <= control_end ? t.control : t.anywhere;
      if (found < 0) continue;
      best = found;
      best_end = end;
    }
    if (best < 0) continue;
    const SpecialToken& token = tokens_[static_cast<size_t>(best)];
    if (token.single_word && ((begin > 0 && is_word(read_before(text, begin))) ||
                              (best_end < text.size() && is_word(read_code_point(text, best_end))))) {
      begin = best_end - 1;  // what it covered is not looked at again
      continue;
    }
    return SpecialMatch{token.lstrip ? skip_spaces_back(text, begin, from) : begin,
                        token.rstrip ? skip_spaces(text, best_end) : best_end, token.id};
  }
  return std::nullopt;
}

}  // namespace minfer
