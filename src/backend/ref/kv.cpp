// KV regions: element access, stores and slot lookup.
#include "backend/ref/kv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/ref/ops.h"
#include "backend/ref/q8a.h"
#include "base/f16.h"
#include "tensor/kv_layout.h"

namespace minfer::ref {
namespace {

template <typename T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <typename T>
void store(std::byte* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

float load_float(DType t, const std::byte* base, int64_t index) {
  if (t == DType::kF32) return load<float>(base + index * 4);
  const uint16_t bits = load<uint16_t>(base + index * 2);
  return t == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

void store_float(DType t, std::byte* base, int64_t index, float x) {
  if (t == DType::kF32) {
    store(base + index * 4, x);
  } else {
    store(base + index * 2, t == DType::kF16 ? f32_to_f16(x) : f32_to_bf16(x));
  }
}

}  // namespace

KvRegion::KvRegion(const TensorView& region, const Attrs& attrs)
    : dtype(region.dtype),
      data(region.data),
      n_slots(region.shape[0]),
      n_head_kv(attrs.n_head_kv),
      head_dim(attrs.head_dim) {}

std::byte* KvRegion::block(int64_t slot, int64_t head) const {
  return data + kv_head_block_offset(dtype, slot, head, n_head_kv, head_dim);
}

float KvRegion::k_value(int64_t slot, int64_t head, int64_t i) const {
  return load_float(dtype, block(slot, head), kv_k_index(slot, i));
}
float KvRegion::v_value(int64_t slot, int64_t head, int64_t i) const {
  return load_float(dtype, block(slot, head), kv_v_index(slot, i, head_dim));
}
float KvRegion::k_scale(int64_t slot, int64_t head, int64_t i) const {
  return f16_to_f32(load<uint16_t>(block(slot, head) + kv_k_q8_scale(slot, i)));
}
int8_t KvRegion::k_code(int64_t slot, int64_t head, int64_t i) const {
  return load<int8_t>(block(slot, head) + kv_k_q8_code(slot, i));
}
float KvRegion::v_scale(int64_t slot, int64_t head, int64_t i) const {
  return f16_to_f32(load<uint16_t>(block(slot, head) + kv_v_q8_scale(slot, i, head_dim)));
}
int8_t KvRegion::v_code(int64_t slot, int64_t head, int64_t i) const {
  return load<int8_t>(block(slot, head) + kv_v_q8_code(slot, i, head_dim));
}

void KvRegion::store_k(int64_t slot, int64_t head, const float* x) {
  std::byte* base = block(slot, head);
  if (dtype != DType::kQ8_0) {
    for (int64_t i = 0; i < head_dim; ++i) store_float(dtype, base, kv_k_index(slot, i), x[i]);
    return;
  }
  for (int64_t b = 0; b < head_dim; b += 32) {
    const KvQ8Block q = encode_kv_q8(x + b);
    store(base + kv_k_q8_scale(slot, b), q.d);
    for (int64_t i = 0; i < 32; ++i) store(base + kv_k_q8_code(slot, b + i), q.q[i]);
  }
}

void KvRegion::store_v(int64_t slot, int64_t head, const float* x) {
  std::byte* base = block(slot, head);
  if (dtype != DType::kQ8_0) {
    for (int64_t i = 0; i < head_dim; ++i) store_float(dtype, base, kv_v_index(slot, i, head_dim), x[i]);
    return;
  }
  for (int64_t b = 0; b < head_dim; b += 32) {
    const KvQ8Block q = encode_kv_q8(x + b);
    store(base + kv_v_q8_scale(slot, b, head_dim), q.d);
    for (int64_t i = 0; i < 32; ++i) store(base + kv_v_q8_code(slot, b + i, head_dim), q.q[i]);
  }
}

KvQ8Block encode_kv_q8(const float* x) {
  KvQ8Block out{};
  const float amax = amax_32(x);
  if (!(amax <= std::numeric_limits<float>::max())) {
    out.d = 0x7e00;  // f16 NaN
    return out;
  }
  if (amax < kQ8aTiny) return out;
  const float id = 127.0f / amax;
  out.d = f32_to_f16(amax / 127.0f);
  for (int i = 0; i < 32; ++i) out.q[i] = static_cast<int8_t>(std::rint(x[i] * id));
  return out;
}

int64_t visible_lo(int64_t pos, int32_t window) { return window == 0 ? 0 : std::max<int64_t>(0, pos - window + 1); }

bool find_visible(const char* op, const KernelArgs& args, int64_t t, const TensorView& positions,
                  const TensorView& seqs, const TensorView& block_table, int64_t n_slots, int64_t n_kv, Worker& worker,
                  Visible* out) {
  const Attrs& attrs = *args.attrs;
  const int64_t pos = positions.as<int32_t>()[t], seq = seqs.as<int32_t>()[t];
  const int64_t n_seq = block_table.shape[0], n_pages = block_table.shape[1];
  const auto fail = [&](std::string what) {
    worker.fail(make_error(ErrorCode::kOutOfRange, "[{}] token {}{}: {}", op, t, layer_text(attrs), what));
    return false;
  };
  if (pos < 0 || pos >= n_kv) return fail(fmt::format("position {} is outside 0..{}", pos, n_kv - 1));
  if (seq < 0 || seq >= n_seq)
    return fail(fmt::format("sequence {} is outside the {} rows of the block table", seq, n_seq));
  if (pos / attrs.page_size >= n_pages) {
    return fail(fmt::format("position {} needs page {}, the block table has {} per sequence", pos,
                            pos / attrs.page_size, n_pages));
  }
  *out = {visible_lo(pos, attrs.window), pos, block_table.row<int32_t>(seq), attrs.page_size};
  for (int64_t p = out->lo / attrs.page_size; p <= pos / attrs.page_size; ++p) {
    // the last page counts up to the token's own position only
    const int64_t last = std::min(pos, (p + 1) * attrs.page_size - 1);
    if (out->pages[p] < 0 || out->slot(last) >= n_slots) {
      return fail(fmt::format("page {} of sequence {} is {}, so position {} lies at slot {} of a region of {} slots", p,
                              seq, out->pages[p], last, out->slot(last), n_slots));
    }
  }
  return true;
}

}  // namespace minfer::ref
