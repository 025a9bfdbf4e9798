#include "backend/cpu/ops/attention_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/cpu/ops/op_lists.h"

namespace minfer::cpu {

bool BlockWalk::next(TokenBlock* block) {
  if (token_ >= in_.n_tokens) return false;
  const int64_t first = token_;
  int64_t end = first + 1;
  while (end < in_.n_tokens && end - first < max_tokens_ && in_.seqs[end] == in_.seqs[first] &&
         int64_t{in_.positions[end]} == int64_t{in_.positions[end - 1]} + 1) {
    ++end;
  }
  token_ = end;
  *block = {index_++,
            first,
            end - first,
            visible_begin(in_.positions[first], in_.attrs->window),
            in_.positions[end - 1],
            in_.block_table.row<int32_t>(in_.seqs[first])};
  return true;
}

bool BlockWalk::seek(int64_t index, TokenBlock* block) {
  if (block->index == index) return true;
  if (index < index_) token_ = 0, index_ = 0;
  while (next(block)) {
    if (block->index == index) return true;
  }
  return false;
}

bool check_tokens(const AttnInputs& in, int64_t max_tokens, Worker& worker) {
  const Attrs& attrs = *in.attrs;
  const int64_t n_seq = in.block_table.shape[0], n_pages = in.block_table.shape[1], page_size = attrs.page_size;
  const auto fail = [&](int64_t token, const std::string& what) {
    worker.fail(make_error(ErrorCode::kOutOfRange, "[attention] token {}{}: {}", token, layer_text(attrs), what));
    return false;
  };
  for (int64_t t = 0; t < in.n_tokens; ++t) {
    const int64_t p = in.positions[t], seq = in.seqs[t];
    if (p < 0 || p >= attrs.n_kv) return fail(t, fmt::format("position {} is outside 0..{}", p, attrs.n_kv - 1));
    if (seq < 0 || seq >= n_seq)
      return fail(t, fmt::format("sequence {} is outside the {} rows of the block table", seq, n_seq));
    if (p / page_size >= n_pages) {
      return fail(
          t, fmt::format("position {} needs page {}, the block table has {} per sequence", p, p / page_size, n_pages));
    }
  }
  BlockWalk walk(in, max_tokens);
  TokenBlock block;
  while (walk.next(&block)) {
    for (int64_t page = block.lo / page_size; page <= block.hi / page_size; ++page) {
      const int64_t last = std::min(block.hi, (page + 1) * page_size - 1);  // position
      const int64_t slot = block.pages[page] * page_size + last % page_size;
      if (block.pages[page] < 0 || slot >= in.n_slots) {
        return fail(block.first + block.n_tokens - 1,
                    fmt::format("page {} of sequence {} is {}, so position {} lies at slot {} of a region of {} slots",
                                page, in.seqs[block.first], block.pages[page], last, slot, in.n_slots));
      }
    }
  }
  return true;
}

}  // namespace minfer::cpu
