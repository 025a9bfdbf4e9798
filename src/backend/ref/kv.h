// Access to the KV regions, value by value, and the walk from positions to slots.
// Layout: tensor/kv_layout.h. Regions have shape [n_slots, n_head_kv * head_dim].
#pragma once

#include <cstdint>

#include "backend/kernel.h"

namespace minfer::ref {

// One region with its geometry. Requires: 0 <= slot < n_slots, head < n_head_kv, i < head_dim.
struct KvRegion {
  DType dtype;
  std::byte* data;
  int64_t n_slots, n_head_kv, head_dim;

  KvRegion(const TensorView& region, const Attrs& attrs);

  float k_value(int64_t slot, int64_t head, int64_t i) const;  // float types
  float v_value(int64_t slot, int64_t head, int64_t i) const;  // float types
  // q8_0: the scale and the code of value i.
  float k_scale(int64_t slot, int64_t head, int64_t i) const;
  int8_t k_code(int64_t slot, int64_t head, int64_t i) const;
  float v_scale(int64_t slot, int64_t head, int64_t i) const;
  int8_t v_code(int64_t slot, int64_t head, int64_t i) const;

  void store_k(int64_t slot, int64_t head, const float* x);  // [head_dim]
  void store_v(int64_t slot, int64_t head, const float* x);  // [head_dim]

 private:
  std::byte* block(int64_t slot, int64_t head) const;
};

// The block of 32 values as a q8_0 KV row stores it.
struct KvQ8Block {
  uint16_t d;  // f16 scale
  int8_t q[32];
};
KvQ8Block encode_kv_q8(const float* x);  // [32]

// The positions a token sees: lo..pos, all with slots inside the region.
struct Visible {
  int64_t lo, pos;
  const int32_t* pages;  // the token's row of the block table
  int64_t page_size;
  int64_t slot(int64_t position) const { return pages[position / page_size] * page_size + position % page_size; }
};

// lo of a token at `pos`: max(0, pos - window + 1), 0 without a window.
int64_t visible_lo(int64_t pos, int32_t window);

// Checks a token's position, sequence and every page it sees. False after reporting through worker.fail().
bool find_visible(const char* op, const KernelArgs& args, int64_t t, const TensorView& positions,  // i32 [n]
                  const TensorView& seqs,                                                          // i32 [n]
                  const TensorView& block_table,                                                   // i32 [n_seq, pages]
                  int64_t n_slots, int64_t n_kv, Worker& worker, Visible* out);

}  // namespace minfer::ref
