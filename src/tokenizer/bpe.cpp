// See bpe.h.
#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace minfer {
namespace {

// Up to here a scan for the best pair beats a heap.
constexpr size_t kShortPiece = 64;

uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

Status Bpe::add_merge(size_t rank, std::string_view left_text, std::string_view right_text, std::string& joined) {
  joined.assign(left_text);
  joined += right_text;
  const TokenId left = vocab_->find(left_text);
  const TokenId right = vocab_->find(right_text);
  const TokenId id = vocab_->find(joined);
  if (left == kNoToken || right == kNoToken || id == kNoToken) {
    return make_error(ErrorCode::kCorrupt, "[tokenizer] merges[{}]: its {} is not a token of the vocabulary", rank,
                      left == kNoToken    ? "left part"
                      : right == kNoToken ? "right part"
                                          : "result");
  }
  // A merge must not spell a control token: text never becomes one.
  if (vocab_->type(left) == TokenType::kControl || vocab_->type(right) == TokenType::kControl ||
      vocab_->type(id) == TokenType::kControl)
    return {};
  const uint64_t key = pair_key(left, right);
  size_t i = slot(key);
  while (merges_[i].key != kFree && merges_[i].key != key) i = (i + 1) & (merges_.size() - 1);
  if (merges_[i].key == key) {
    return make_error(ErrorCode::kCorrupt, "[tokenizer] merges[{}]: the same pair as merges[{}]", rank,
                      merges_[i].rank);
  }
  merges_[i] = {key, static_cast<uint32_t>(rank), id};
  return {};
}

Status Bpe::build(const Vocabulary& vocab, const VocabData& data, const TextRules& rules) {
  vocab_ = &vocab;
  seed_ = hash_seed();
  from_characters_ = rules.kind == VocabKind::kCharBpe;
  byte_fallback_ = rules.byte_fallback;
  fuse_unk_ = rules.fuse_unk;
  const size_t n_merges = std::max(data.merges.size(), data.merge_pairs.size());
  if (n_merges >= Scratch::kNoRank) {
    return make_error(ErrorCode::kUnsupported, "[tokenizer] merges: found {}, expected fewer than 2^32 - 1", n_merges);
  }
  merges_.assign(std::bit_ceil(n_merges * 2 + 2), Merge{kFree, 0, kNoToken});
  std::string joined;
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    const std::string_view line = data.merges[rank];
    const size_t space = line.find(' ', 1);  // a symbol has at least one byte and no space (byte mapping, U+2581)
    if (space == std::string_view::npos || space + 1 == line.size()) {
      return make_error(ErrorCode::kCorrupt,
                        "[tokenizer] merges[{}]: found {} bytes without two parts, expected 'left right'", rank,
                        line.size());
    }
    MINFER_TRY(add_merge(rank, line.substr(0, space), line.substr(space + 1), joined));
  }
  for (size_t rank = 0; rank < data.merge_pairs.size(); ++rank) {
    MINFER_TRY(add_merge(rank, data.merge_pairs[rank].first, data.merge_pairs[rank].second, joined));
  }
  whole_words_ = rules.ignore_merges;
  if (whole_words_) words_.reserve(vocab.size());
  const auto& keys = from_characters_ ? vocab.texts : vocab.pieces;
  for (size_t i = 0; i < vocab.size(); ++i) {
    const TokenType type = vocab.types[i];
    const bool plain = type == TokenType::kNormal || type == TokenType::kUserDefined;
    if (whole_words_ && plain && vocab.usable(static_cast<TokenId>(i)) && !keys[i].empty()) {
      words_.insert(keys[i], static_cast<TokenId>(i), keys);
    }
    if (from_characters_) cutter_.add(vocab.texts[i]);
  }
  return {};
}

const Bpe::Merge* Bpe::find(TokenId left, TokenId right) const {
  const uint64_t key = pair_key(left, right);
  if ((left | right) < 0) return nullptr;
  for (size_t i = slot(key); merges_[i].key != kFree; i = (i + 1) & (merges_.size() - 1)) {
    if (merges_[i].key == key) return &merges_[i];
  }
  return nullptr;
}

// The symbols stand side by side; a merge closes the gap.
void Bpe::merge_short(std::vector<Scratch::Symbol>& symbols) const {
  const auto rank_at = [&](size_t i) {
    const Merge* m = find(symbols[i].id, symbols[i + 1].id);
    return m ? m->rank : Scratch::kNoRank;
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) symbols[i].rank = rank_at(i);
  while (symbols.size() > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < symbols.size(); ++i) {
      if (symbols[i].rank < symbols[best].rank) best = i;
    }
    if (symbols[best].rank == Scratch::kNoRank) return;
    symbols[best].id = find(symbols[best].id, symbols[best + 1].id)->id;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    if (best + 1 < symbols.size()) symbols[best].rank = rank_at(best);
    if (best > 0) symbols[best - 1].rank = rank_at(best - 1);
  }
}

// A heap of (rank, left index); an entry is stale when its symbol's pair has another rank by now.
void Bpe::merge_long(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  heap.clear();
  const auto update = [&](uint32_t i) {
    Scratch::Symbol& s = symbols[i];
    const Merge* m = s.next == Scratch::kEnd ? nullptr : find(s.id, symbols[s.next].id);
    s.rank = m ? m->rank : Scratch::kNoRank;
    return m != nullptr;
  };
  const auto entry = [&](uint32_t i) { return static_cast<uint64_t>(symbols[i].rank) << 32 | i; };
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    if (update(i)) heap.push_back(entry(i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto refresh = [&](uint32_t i) {
    const uint32_t before = symbols[i].rank;
    if (update(i) && symbols[i].rank != before) {
      heap.push_back(entry(i));
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint64_t top = heap.back();
    heap.pop_back();
    const auto i = static_cast<uint32_t>(top);
    Scratch::Symbol& left = symbols[i];
    if (left.rank != static_cast<uint32_t>(top >> 32) || left.rank == Scratch::kNoRank) continue;
    Scratch::Symbol& right = symbols[left.next];
    left.id = find(left.id, right.id)->id;
    left.rank = right.rank = Scratch::kNoRank;
    right.bytes = 0;
    left.next = right.next;
    if (left.next != Scratch::kEnd) symbols[left.next].prev = i;
    refresh(i);
    if (left.prev != Scratch::kEnd) refresh(left.prev);
  }
  std::erase_if(symbols, [](const Scratch::Symbol& s) { return s.bytes == 0; });
}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (!from_characters_ || whole_words_) return encode_piece(piece, scratch, out);
  for (size_t pos = 0; pos < piece.size();) {
    const size_t end = cutter_.word_end(piece, pos);
    encode_piece(piece.substr(pos, end - pos), scratch, out);
    pos = end;
  }
}

void Bpe::start_from_bytes(std::string_view piece, std::vector<Scratch::Symbol>& symbols) const {
  for (uint32_t i = 0; i < piece.size(); ++i) {
    const TokenId id = vocab_->byte_tokens[static_cast<unsigned char>(piece[i])];
    if (id == kNoToken) continue;  // its neighbours become neighbours
    const auto at = static_cast<uint32_t>(symbols.size());
    symbols.push_back({at - 1, at + 1, i, 1, id, Scratch::kNoRank});
  }
}

void Bpe::start_from_characters(std::string_view piece, std::vector<Scratch::Symbol>& symbols) const {
  const auto push = [&](size_t begin, size_t bytes, TokenId id) {
    const auto at = static_cast<uint32_t>(symbols.size());
    symbols.push_back(
        {at - 1, at + 1, static_cast<uint32_t>(begin), static_cast<uint32_t>(bytes), id, Scratch::kNoRank});
  };
  bool after_unknown = false;
  for (size_t pos = 0; pos < piece.size();) {
    const size_t bytes = read_code_point(piece, pos).bytes;
    const std::string_view text = piece.substr(pos, bytes);
    const TokenId id = vocab_->find(text);
    const auto has_byte = [&](char c) { return vocab_->byte_tokens[static_cast<unsigned char>(c)] != kNoToken; };
    bool unknown = false;
    if (id != kNoToken && vocab_->usable(id)) {
      push(pos, bytes, id);
    } else if (byte_fallback_ && std::all_of(text.begin(), text.end(), has_byte)) {
      for (size_t i = 0; i < bytes; ++i) push(pos + i, 1, vocab_->byte_tokens[static_cast<unsigned char>(text[i])]);
    } else if (vocab_->unk != kNoToken) {
      if (!(fuse_unk_ && after_unknown)) push(pos, bytes, vocab_->unk);
      unknown = true;
    }
    after_unknown = unknown;
    pos += bytes;
  }
}

void Bpe::encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (scratch.cache.find(piece, out)) return;
  const size_t first = out.size();
  if (whole_words_) {
    const TokenId id = words_.find(piece, from_characters_ ? vocab_->texts : vocab_->pieces);
    if (id != kNoToken) {
      out.push_back(id);
      return;
    }
  }
  auto& symbols = scratch.symbols;
  symbols.clear();
  if (from_characters_)
    start_from_characters(piece, symbols);
  else
    start_from_bytes(piece, symbols);
  if (!symbols.empty()) {
    symbols.front().prev = Scratch::kEnd;
    symbols.back().next = Scratch::kEnd;
  }
  if (symbols.size() <= kShortPiece)
    merge_short(symbols);
  else
    merge_long(scratch);
  for (const Scratch::Symbol& s : symbols) out.push_back(s.id);
  scratch.cache.insert(piece, {out.data() + first, out.size() - first});
}

}  // namespace minfer
