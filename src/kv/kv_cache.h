// KvCache: the K and V regions of all layers, as one allocation, and their views for plans.
// Layout: tensor/kv_layout.h per region; regions in order k0, v0, k1, v1, ... (index 2*layer + is_v), 64-byte aligned.
// Errors:  a head size the type cannot hold, memory.
#pragma once

#include <vector>

#include "tensor/buffer.h"
#include "tensor/view.h"

namespace minfer {

struct KvShape {
  int32_t n_layer = 0, n_head_kv = 0, head_dim = 0;
  int32_t page_size = 32;  // rows per page, a multiple of 16
  int32_t n_pages = 0;
  DType type_k = DType::kF16, type_v = DType::kF16;
  int64_t n_slots() const { return int64_t{n_pages} * page_size; }
  int64_t bytes() const;  // of all regions
};

class KvCache {
 public:
  static Result<KvCache> create(const KvShape& shape);
  const KvShape& shape() const { return shape_; }
  const std::vector<TensorView>& views() const { return views_; }

 private:
  KvShape shape_;
  Buffer memory_;
  std::vector<TensorView> views_;
};

}  // namespace minfer
