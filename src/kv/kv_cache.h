// KvCache: the K and V regions of all layers, as one allocation, and their views for plans.
// Layout: tensor/kv_layout.h per region; regions in order k0, v0, k1, v1, ... (index 2*layer + is_v), 64-byte aligned.
// Errors:  a head size the type cannot hold, memory.
#pragma once

#include <span>
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
  int64_t bytes() const;       // of all regions
  int64_t page_bytes() const;  // of one page's rows in all regions
};

class KvCache {
 public:
  static Result<KvCache> create(const KvShape& shape);
  const KvShape& shape() const { return shape_; }
  const std::vector<TensorView>& views() const { return views_; }

  // A page's rows, region by region, in the order of views(). Requires: pages inside the shape.
  void copy_page(int32_t from, int32_t to);
  void read_page(int32_t page, std::span<std::byte> out) const;  // out: [page_bytes]
  void write_page(int32_t page, std::span<const std::byte> in);  // in: [page_bytes]

 private:
  std::span<std::byte> rows(size_t region, int32_t page) const;

  KvShape shape_;
  Buffer memory_;
  std::vector<TensorView> views_;
};

}  // namespace minfer
