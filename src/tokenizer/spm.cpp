// See spm.h.
#include "tokenizer/spm.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace minfer {
namespace {

// Lower priority: lower score, or further right.
bool after(const Scratch::Pair& a, const Scratch::Pair& b) {
  return a.score < b.score || (a.score == b.score && a.left > b.left);
}

}  // namespace

void SpmBpe::build(const Vocabulary& vocab) {
  vocab_ = &vocab;
  mergeable_.reserve(vocab.size());
  for (size_t i = 0; i < vocab.size(); ++i) {
    const TokenType type = vocab.types[i];
    const std::string_view text = vocab.texts[i];
    if (text.empty() || (type != TokenType::kNormal && type != TokenType::kUserDefined && type != TokenType::kUnused))
      continue;
    mergeable_.insert(text, static_cast<TokenId>(i), vocab.texts);
    longest_ = std::max(longest_, text.size());
    has_unused_ |= type == TokenType::kUnused;
    words_.add(text);
  }
}

Status SpmBpe::encode(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const {
  // Unknown characters at a seam are still one run: encode_piece looks at what `out` ends with.
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = words_.word_end(text, pos);
    MINFER_TRY(encode_piece(text.substr(pos, end - pos), scratch, out));
    pos = end;
  }
  return {};
}

void SpmBpe::merge(std::string_view piece, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& pairs = scratch.pairs;
  symbols.clear();
  pairs.clear();
  scratch.unmerge.clear();
  for (size_t pos = 0; pos < piece.size();) {
    const CodePoint c = read_code_point(piece, pos);
    const auto i = static_cast<uint32_t>(symbols.size());
    symbols.push_back({i - 1, i + 1, static_cast<uint32_t>(pos), c.bytes, kNoToken, Scratch::kNoRank});
    pos += c.bytes;
  }
  symbols.front().prev = Scratch::kEnd;
  symbols.back().next = Scratch::kEnd;

  const auto candidate = [&](uint32_t left) {
    const uint32_t right = left == Scratch::kEnd ? Scratch::kEnd : symbols[left].next;
    if (right == Scratch::kEnd) return false;
    const uint32_t bytes = symbols[left].bytes + symbols[right].bytes;
    if (bytes > longest_) return false;
    const TokenId id = find(piece.substr(symbols[left].begin, bytes));
    if (id == kNoToken) return false;
    if (has_unused_ && vocab_->type(id) == TokenType::kUnused) {
      scratch.unmerge[piece.substr(symbols[left].begin, bytes)] = symbols[left].bytes;
    }
    pairs.push_back({vocab_->scores[static_cast<size_t>(id)], left, right, bytes});
    return true;
  };
  for (uint32_t i = 0; i < symbols.size(); ++i) candidate(i);
  std::make_heap(pairs.begin(), pairs.end(), after);
  while (!pairs.empty()) {
    std::pop_heap(pairs.begin(), pairs.end(), after);
    const Scratch::Pair top = pairs.back();
    pairs.pop_back();
    Scratch::Symbol& left = symbols[top.left];
    Scratch::Symbol& right = symbols[top.right];
    if (left.bytes == 0 || right.bytes == 0 || left.bytes + right.bytes != top.bytes) continue;
    left.bytes = top.bytes;
    right.bytes = 0;
    left.next = right.next;
    if (left.next != Scratch::kEnd) symbols[left.next].prev = top.left;
    if (candidate(left.prev)) std::push_heap(pairs.begin(), pairs.end(), after);
    if (candidate(top.left)) std::push_heap(pairs.begin(), pairs.end(), after);
  }
}

Status SpmBpe::encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  const bool after_unknown = vocab_->unk != kNoToken && !out.empty() && out.back() == vocab_->unk;
  if (!after_unknown && scratch.cache.find(piece, out)) return {};
  const size_t first = out.size();
  merge(piece, scratch);
  for (const Scratch::Symbol& s : scratch.symbols) {
    if (s.bytes == 0) continue;
    const std::string_view text = piece.substr(s.begin, s.bytes);
    const TokenId id = find(text);
    if (id == kNoToken)
      MINFER_TRY(emit_fallback(text, out));
    else if (has_unused_ && vocab_->type(id) == TokenType::kUnused)
      emit_unused(text, scratch, out);
    else
      out.push_back(id);
  }
  if (!after_unknown) scratch.cache.insert(piece, {out.data() + first, out.size() - first});
  return {};
}

// `text` is an unused token that was merged: gives out its parts, theirs if they are unused too, and so on.
void SpmBpe::emit_unused(std::string_view text, const Scratch& scratch, std::vector<TokenId>& out) const {
  std::vector<std::string_view> open = {text};
  while (!open.empty()) {
    const std::string_view part = open.back();
    open.pop_back();
    const TokenId id = find(part);
    const auto it = vocab_->type(id) == TokenType::kUnused ? scratch.unmerge.find(part) : scratch.unmerge.end();
    if (it == scratch.unmerge.end()) {  // an ordinary token, or one character
      out.push_back(id);
      continue;
    }
    open.push_back(part.substr(it->second));
    open.push_back(part.substr(0, it->second));
  }
}

Status SpmBpe::emit_fallback(std::string_view text, std::vector<TokenId>& out) const {
  const bool all_bytes = std::all_of(
      text.begin(), text.end(), [&](char c) { return vocab_->byte_tokens[static_cast<unsigned char>(c)] != kNoToken; });
  if (all_bytes) {
    for (const char c : text) out.push_back(vocab_->byte_tokens[static_cast<unsigned char>(c)]);
    return {};
  }
  if (vocab_->unk == kNoToken) {
    return make_error(
        ErrorCode::kInvalidArgument,
        "[tokenizer] character of {} bytes that begins with 0x{:02x}: the vocabulary has no token for it, no byte "
        "tokens and no unknown token",
        text.size(), static_cast<unsigned char>(text[0]));
  }
  if (out.empty() || out.back() != vocab_->unk) out.push_back(vocab_->unk);
  return {};
}

}  // namespace minfer
