// Walking the tokens of an attention node in blocks that read the same K and V.
// A block is a run of tokens of one sequence at consecutive positions, at most max_tokens long.
// Errors:  next() has nothing to check any more: check_tokens() ran before.
// Threads: each worker walks for itself.
#pragma once

#include <cstdint>

#include "backend/kernel.h"

namespace minfer::cpu {

struct AttnInputs {
  const Attrs* attrs;
  int64_t n_tokens;
  const int32_t* positions;  // [n_tokens]
  const int32_t* seqs;       // [n_tokens]
  TensorView block_table;    // i32 [n_seq, pages]
  int64_t n_slots;           // of the smaller region
};

struct TokenBlock {
  int64_t index = -1;
  int64_t first = 0, n_tokens = 0;
  int64_t lo = 0, hi = -1;         // positions that some token sees: [lo, hi]
  const int32_t* pages = nullptr;  // the sequence's row of the block table

  int64_t tile_begin() const { return lo / 256; }
  int64_t n_tiles() const { return hi / 256 - lo / 256 + 1; }
};

// First visible position of a token at `position`.
inline int64_t visible_begin(int64_t position, int32_t window) {
  return window > 0 && position >= window ? position - window + 1 : 0;
}

class BlockWalk {
 public:
  BlockWalk(const AttnInputs& in, int64_t max_tokens) : in_(in), max_tokens_(max_tokens) {}
  bool next(TokenBlock* block);                 // false at the end
  bool seek(int64_t index, TokenBlock* block);  // walks on to block `index`, or again from the start

 private:
  const AttnInputs& in_;
  int64_t max_tokens_;
  int64_t token_ = 0, index_ = 0;
};

// Checks positions, sequences and every page that is seen. False after reporting through worker.fail().
bool check_tokens(const AttnInputs& in, int64_t max_tokens, Worker& worker);

}  // namespace minfer::cpu
