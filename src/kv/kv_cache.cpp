// Allocation of the regions. Memory is taken only when rows are stored, so a large context costs what is used: the
// first 2 MiB of a region in small pages (zeroing a huge page for each of 60 regions costs more than a short answer),
// the rest in huge ones, which long contexts are read from.
#include "kv/kv_cache.h"

#include "tensor/kv_layout.h"

namespace minfer {
namespace {

constexpr int64_t kSmallPagesBytes = int64_t{2} << 20;

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

int64_t KvShape::bytes() const {
  return n_layer * (aligned(kv_region_bytes(type_k, n_slots(), n_head_kv, head_dim)) +
                    aligned(kv_region_bytes(type_v, n_slots(), n_head_kv, head_dim)));
}

Result<KvCache> KvCache::create(const KvShape& s) {
  if (s.page_size < kKvGroup || s.page_size % kKvGroup != 0) {
    return make_error(ErrorCode::kInvalidArgument, "[kv] page size {}: expected a multiple of {}", s.page_size,
                      kKvGroup);
  }
  for (DType t : {s.type_k, s.type_v}) {
    if (t != DType::kF32 && t != DType::kF16 && t != DType::kBF16 && t != DType::kQ8_0) {
      return make_error(ErrorCode::kInvalidArgument, "[kv] cache type '{}': expected f32, f16, bf16 or q8_0",
                        dtype_info(t).name);
    }
    if (s.head_dim % dtype_info(t).block_size != 0) {
      return make_error(
          ErrorCode::kUnsupported,
          "[kv] cache type '{}' needs a head size that is a multiple of {}, this model's is {}; f16 works",
          dtype_info(t).name, dtype_info(t).block_size, s.head_dim);
    }
  }
  KvCache cache;
  cache.shape_ = s;
  cache.memory_ = MINFER_TRY_CTX(Buffer::allocate(static_cast<size_t>(s.bytes()), /*huge=*/false),
                                 "[kv] cache of " + std::to_string(s.n_slots()) + " positions");
  std::byte* p = cache.memory_.data();
  for (int32_t i = 0; i < 2 * s.n_layer; ++i) {
    const bool is_v = i % 2 == 1;
    TensorView v;
    v.dtype = is_v ? s.type_v : s.type_k;
    v.layout = is_v ? Layout::kKvV : Layout::kKvK;
    v.shape = Shape{s.n_slots(), int64_t{s.n_head_kv} * s.head_dim};
    v.row_bytes = dtype_row_bytes(v.dtype, v.shape.last());  // nominal: rows are interleaved
    v.data = p;
    cache.views_.push_back(v);
    const int64_t begin = p - cache.memory_.data(),
                  bytes = aligned(kv_region_bytes(v.dtype, s.n_slots(), s.n_head_kv, s.head_dim));
    cache.memory_.advise_huge(static_cast<size_t>(begin + kSmallPagesBytes), static_cast<size_t>(begin + bytes));
    p += bytes;
  }
  return cache;
}

}  // namespace minfer
