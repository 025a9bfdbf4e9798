// See bpe.h.
#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string>

#include "base/error.h"

namespace minfer {
namespace {

// Up to here a scan for the best pair beats a heap.
constexpr size_t kShortPiece = 64;

uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

Status ByteBpe::build(const Vocabulary& vocab, std::span<const std::string_view> merges, bool whole_words) {
  vocab_ = &vocab;
  seed_ = hash_seed();
  merges_.assign(std::bit_ceil(merges.size() * 2 + 2), Merge{kFree, 0, kNoToken});
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view line = merges[rank];
    const size_t space = line.find(' ', 1);  // a symbol has at least one byte and is never a space (byte mapping)
    if (space == std::string_view::npos || space + 1 == line.size()) {
      return make_error(ErrorCode::kCorrupt,
                        "[tokenizer] merges[{}]: found {} bytes without two parts, expected 'left right'", rank,
                        line.size());
    }
    joined.assign(line.substr(0, space));
    joined += line.substr(space + 1);
    const TokenId left = vocab.find(line.substr(0, space));
    const TokenId right = vocab.find(line.substr(space + 1));
    const TokenId id = vocab.find(joined);
    if (left == kNoToken || right == kNoToken || id == kNoToken) {
      return make_error(ErrorCode::kCorrupt, "[tokenizer] merges[{}]: its {} is not a token of the vocabulary", rank,
                        left == kNoToken    ? "left part"
                        : right == kNoToken ? "right part"
                                            : "result");
    }
    // A merge must not spell a control token: text never becomes one.
    if (vocab.type(left) == TokenType::kControl || vocab.type(right) == TokenType::kControl ||
        vocab.type(id) == TokenType::kControl)
      continue;
    const uint64_t key = pair_key(left, right);
    size_t i = slot(key);
    while (merges_[i].key != kFree && merges_[i].key != key) i = (i + 1) & (merges_.size() - 1);
    if (merges_[i].key == key) {
      return make_error(ErrorCode::kCorrupt, "[tokenizer] merges[{}]: the same pair as merges[{}]", rank,
                        merges_[i].rank);
    }
    merges_[i] = {key, static_cast<uint32_t>(rank), id};
  }
  whole_words_ = whole_words;
  if (whole_words) {
    words_.reserve(vocab.size());
    for (size_t i = 0; i < vocab.size(); ++i) {
      if (vocab.types[i] == TokenType::kNormal && !vocab.pieces[i].empty()) {
        words_.insert(vocab.pieces[i], static_cast<TokenId>(i), vocab.pieces);
      }
    }
  }
  return {};
}

const ByteBpe::Merge* ByteBpe::find(TokenId left, TokenId right) const {
  const uint64_t key = pair_key(left, right);
  if ((left | right) < 0) return nullptr;
  for (size_t i = slot(key); merges_[i].key != kFree; i = (i + 1) & (merges_.size() - 1)) {
    if (merges_[i].key == key) return &merges_[i];
  }
  return nullptr;
}

// The symbols stand side by side; a merge closes the gap.
void ByteBpe::merge_short(std::vector<Scratch::Symbol>& symbols) const {
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
void ByteBpe::merge_long(Scratch& scratch) const {
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

void ByteBpe::encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (scratch.cache.find(piece, out)) return;
  const size_t first = out.size();
  if (whole_words_) {
    const TokenId id = words_.find(piece, vocab_->pieces);
    if (id != kNoToken) {
      out.push_back(id);
      return;
    }
  }
  auto& symbols = scratch.symbols;
  symbols.clear();
  for (uint32_t i = 0; i < piece.size(); ++i) {
    const TokenId id = vocab_->byte_tokens[static_cast<unsigned char>(piece[i])];
    if (id == kNoToken) continue;  // its neighbours become neighbours
    const auto at = static_cast<uint32_t>(symbols.size());
    symbols.push_back({at == 0 ? Scratch::kEnd : at - 1, at + 1, i, 1, id, Scratch::kNoRank});
  }
  if (!symbols.empty()) symbols.back().next = Scratch::kEnd;
  if (symbols.size() <= kShortPiece)
    merge_short(symbols);
  else
    merge_long(scratch);
  for (const Scratch::Symbol& s : symbols) out.push_back(s.id);
  scratch.cache.insert(piece, {out.data() + first, out.size() - first});
}

}  // namespace minfer
