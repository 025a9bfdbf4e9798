// Allocation of the regions. Memory is taken only when rows are stored, so a large context costs what is used: the
// first 2 MiB of a region in small pages (zeroing a huge page for each of 60 regions costs more than a short answer),
// the rest in huge ones, which long contexts are read from.
#include "kv/kv_cache.h"

#include <cstring>

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

int64_t KvShape::page_bytes() const {
  return n_layer * (kv_region_bytes(type_k, page_size, n_head_kv, head_dim) +
                    kv_region_bytes(type_v, page_size, n_head_kv, head_dim));
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

// The rows of a page are whole groups of slots, and those lie together.
std::span<std::byte> KvCache::rows(size_t region, int32_t page) const {
  const TensorView& v = views_[region];
  const auto bytes = static_cast<size_t>(kv_region_bytes(v.dtype, shape_.page_size, shape_.n_head_kv, shape_.head_dim));
  return {v.data + static_cast<size_t>(page) * bytes, bytes};
}

void KvCache::copy_page(int32_t from, int32_t to) {
  for (size_t r = 0; r < views_.size(); ++r) {
    const auto source = rows(r, from);
    std::memcpy(rows(r, to).data(), source.data(), source.size());
  }
}

void KvCache::read_page(int32_t page, std::span<std::byte> out) const {
  MINFER_CHECK(out.size() == static_cast<size_t>(shape_.page_bytes()));
  for (size_t r = 0; r < views_.size(); ++r) {
    const auto source = rows(r, page);
    std::memcpy(out.data(), source.data(), source.size());
    out = out.subspan(source.size());
  }
}

void KvCache::write_page(int32_t page, std::span<const std::byte> in) {
  MINFER_CHECK(in.size() == static_cast<size_t>(shape_.page_bytes()));
  for (size_t r = 0; r < views_.size(); ++r) {
    const auto target = rows(r, page);
    std::memcpy(target.data(), in.data(), target.size());
    in = in.subspan(target.size());
  }
}

}  // namespace minfer
