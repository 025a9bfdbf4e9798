// Scratch: the working memory of one encode call, kept by the tokenizer between calls.
// Threads: one owner at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/pretokenize.h"
#include "tokenizer/vocab.h"
#include "tokenizer/word_cache.h"

namespace minfer {

struct Scratch {
  // A symbol of the piece being merged, linked to its living neighbours by index; kEnd at both ends.
  struct Symbol {
    uint32_t prev, next;
    uint32_t begin, bytes;  // its text in the piece; 0 bytes = merged away
    TokenId id;
    uint32_t rank;  // of the pair with `next`; kNoRank if there is none (byte-level BPE)
  };
  // A pair that could be merged: the SentencePiece queue.
  struct Pair {
    double score;
    uint32_t left, right;
    uint32_t bytes;  // of both when it was queued: a stale entry has another number
  };
  static constexpr uint32_t kEnd = 0xffffffffu;
  static constexpr uint32_t kNoRank = 0xffffffffu;

  std::string normal, swap_text;    // normalized text, and room for the next step
  std::string text;                 // text rewritten while it is cut
  std::vector<Piece> pieces, swap;  // where it is cut
  std::vector<double> best;         // unigram: [bytes + 1] the likelihood of the best way to get there
  std::vector<Symbol> path;         // unigram: [bytes + 1] its last token
  std::vector<Symbol> symbols;
  std::vector<uint64_t> heap;  // rank << 32 | index of the left symbol
  std::vector<Pair> pairs;
  std::unordered_map<std::string_view, uint32_t> unmerge;  // unused token made in this piece -> bytes of its left part
  WordCache cache;

  // Worth keeping: a call on a huge text must not pin its memory.
  bool small() const {
    constexpr size_t kKeepBytes = size_t{4} << 20;
    return normal.capacity() + swap_text.capacity() + text.capacity() +
               (pieces.capacity() + swap.capacity()) * sizeof(Piece) + best.capacity() * sizeof(double) +
               (symbols.capacity() + path.capacity()) * sizeof(Symbol) + heap.capacity() * sizeof(uint64_t) +
               pairs.capacity() * sizeof(Pair) <=
           kKeepBytes;
  }
};

}  // namespace minfer
