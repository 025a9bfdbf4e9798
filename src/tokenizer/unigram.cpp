// See unigram.h.
#include "tokenizer/unigram.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace minfer {

Status Unigram::build(const Vocabulary& vocab, bool byte_fallback) {
  vocab_ = &vocab;
  byte_fallback_ = byte_fallback;
  size_t bytes = 0;
  for (size_t i = 0; i < vocab.size(); ++i) bytes += vocab.texts[i].size();
  MINFER_TRY(trie_.reserve(bytes));
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < vocab.size(); ++i) {
    const TokenType type = vocab.types[i];
    const std::string_view text = vocab.texts[i];
    const bool plain = type == TokenType::kNormal || type == TokenType::kUserDefined;
    if (text.empty() || !plain || !vocab.usable(static_cast<TokenId>(i))) continue;
    if (text.size() > kMaxTokenBytes) {
      return make_error(ErrorCode::kUnsupported, "[tokenizer] token {}: {} bytes, expected at most {}", i, text.size(),
                        kMaxTokenBytes);
    }
    const uint32_t node = trie_.add(text);
    if (node >= ends_.size()) ends_.resize(node + 1, kNoToken);
    if (ends_[node] == kNoToken) ends_[node] = static_cast<TokenId>(i);
    least = std::min(least, vocab.scores[i]);
    cutter_.add(text);
    cuts_ |= text == kSpaceMark;
  }
  ends_.resize(trie_.size(), kNoToken);
  unknown_score_ = (least == std::numeric_limits<double>::infinity() ? 0.0 : least) - 10.0;
  return {};
}

Status Unigram::encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  for (size_t pos = 0; pos < piece.size();) {
    const size_t end = cuts_ ? cutter_.word_end(piece, pos) : piece.size();
    MINFER_TRY(encode_word(piece.substr(pos, end - pos), scratch, out));
    pos = end;
  }
  return {};
}

Status Unigram::encode_word(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (scratch.cache.find(piece, out)) return {};
  const size_t n = piece.size(), first = out.size();
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  auto& best = scratch.best;
  auto& path = scratch.path;
  best.assign(n + 1, kNever);
  path.assign(n + 1, {Scratch::kEnd, 0, 0, 0, kNoToken, 0});
  best[0] = 0;
  path[0].prev = 0;
  const auto offer = [&](size_t begin, size_t end, double score, TokenId id) {
    if (path[end].prev != Scratch::kEnd && !(score > best[end])) return;
    best[end] = score;
    path[end].prev = static_cast<uint32_t>(begin);
    path[end].id = id;
  };
  for (size_t begin = 0; begin < n; ++begin) {
    if (path[begin].prev == Scratch::kEnd) continue;  // no way leads here
    const size_t character = begin + read_code_point(piece, begin).bytes;
    bool whole = false;
    uint32_t node = 0;
    for (size_t end = begin; end < n;) {
      node = trie_.child(node, static_cast<unsigned char>(piece[end]));
      if (node == 0) break;
      ++end;
      const TokenId id = ends_[node];
      if (id == kNoToken) continue;
      offer(begin, end, best[begin] + vocab_->scores[static_cast<size_t>(id)], id);
      whole |= end == character;
    }
    if (!whole) offer(begin, character, best[begin] + unknown_score_, kNoToken);
  }
  // Backwards along the best way, then turned around.
  auto& symbols = scratch.symbols;
  symbols.clear();
  for (size_t end = n; end > 0;) {
    const uint32_t begin = path[end].prev;
    const TokenId id = path[end].id;
    if (id == kNoToken && !symbols.empty() && symbols.back().id == kNoToken) {
      symbols.back().bytes += symbols.back().begin - begin;
      symbols.back().begin = begin;
    } else {
      symbols.push_back({0, 0, begin, static_cast<uint32_t>(end - begin), id, 0});
    }
    end = begin;
  }
  for (auto it = symbols.rbegin(); it != symbols.rend(); ++it) {
    if (it->id != kNoToken)
      out.push_back(it->id);
    else
      MINFER_TRY(emit_unknown(piece.substr(it->begin, it->bytes), out));
  }
  scratch.cache.insert(piece, {out.data() + first, out.size() - first});
  return {};
}

Status Unigram::emit_unknown(std::string_view text, std::vector<TokenId>& out) const {
  const auto byte = [&](char c) { return vocab_->byte_tokens[static_cast<unsigned char>(c)]; };
  if (byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char c) { return byte(c) != kNoToken; })) {
    for (const char c : text) out.push_back(byte(c));
    return {};
  }
  if (vocab_->unk == kNoToken) {
    return make_error(ErrorCode::kInvalidArgument,
                      "[tokenizer] {} bytes that begin with 0x{:02x}: the vocabulary has no token for them, no byte "
                      "tokens and no unknown token",
                      text.size(), static_cast<unsigned char>(text[0]));
  }
  out.push_back(vocab_->unk);
  return {};
}

}  // namespace minfer
