// kv_store_k, kv_store_v, rope_store: writing rows of K and V to the slots their inputs name.
// Errors:  a slot outside the region, before anything of its token is written by any worker.
// Threads: (token, head) pairs are shared out; every worker checks the slots of the tokens it touches.
// Requires: the slots of one step differ.
#include "backend/cpu/ops/op_lists.h"
#include "backend/cpu/ops/rope_head.h"
#include "backend/cpu/select.h"
#include "tensor/kv_layout.h"

namespace minfer::cpu {

namespace {

// A region with its geometry and the store of its type.
struct Region {
  std::byte* data;
  int64_t n_slots, block_bytes, n_head_kv, head_dim;
  void (*store)(const float* x, std::byte* head_block, int slot, int64_t head_dim);

  Region(const TensorView& view, const Attrs& attrs, const KvKernels& kernels, bool is_v)
      : data(view.data),
        n_slots(view.shape[0]),
        block_bytes(kv_head_block_bytes(view.dtype, attrs.head_dim)),
        n_head_kv(attrs.n_head_kv),
        head_dim(attrs.head_dim),
        store((is_v ? kernels.store_v : kernels.store_k)[kv_type_index(view.dtype)]) {}

  void put(int64_t slot, int64_t head, const float* x) const {  // x: [head_dim]
    store(x, data + (slot / kKvGroup * n_head_kv + head) * block_bytes, static_cast<int>(slot % kKvGroup), head_dim);
  }
};

// False after reporting through worker.fail().
bool check_slot(const char* op, const KernelArgs& args, int64_t token, int64_t slot, int64_t n_slots, Worker& worker) {
  if (slot >= 0 && slot < n_slots) return true;
  worker.fail(make_error(ErrorCode::kOutOfRange, "[{}] token {}{}: slot {} is outside the region of {} slots", op,
                         token, layer_text(*args.attrs), slot, n_slots));
  return false;
}

Refusal accept_store(const NodeDesc& node) { return kv_refusal(node.in[1].dtype, node.attrs.head_dim); }

template <IsaLevel I, bool kIsV>
void run_store(const KernelArgs& args, Worker& worker) {
  const TensorView& x = args.in[0];                 // f32 [n, n_head_kv * head_dim]
  const int32_t* slots = args.in[2].as<int32_t>();  // [n]
  const Region region(args.in[1], *args.attrs, cpu_kernels(I).kv, kIsV);
  const auto share = worker.share(x.shape[0] * region.n_head_kv);
  int64_t token = -1;
  for (int64_t i = share.begin; i < share.end; ++i) {
    const int64_t t = i / region.n_head_kv, head = i % region.n_head_kv;
    if (t != token) {
      if (!check_slot(kIsV ? "kv_store_v" : "kv_store_k", args, t, slots[t], region.n_slots, worker)) return;
      token = t;
    }
    region.put(slots[t], head, x.row<float>(t) + head * region.head_dim);
  }
}

// Inputs of rope_store.
enum : int { kQ, kK, kV, kQNorm, kKNorm, kTable, kRegionK, kRegionV, kSlots };

Refusal accept_rope_store(const NodeDesc& node) {
  for (int i : {kRegionK, kRegionV}) {
    if (Refusal why = kv_refusal(node.in[static_cast<size_t>(i)].dtype, node.attrs.head_dim); !why.empty()) return why;
  }
  return {};
}

template <IsaLevel I>
void run_rope_store(const KernelArgs& args, Worker& worker) {
  const Attrs& attrs = *args.attrs;
  const RowKernels& row = cpu_kernels(I).row;
  const TensorView &q = args.in[kQ], &k = args.in[kK], &v = args.in[kV], &table = args.in[kTable];
  const int32_t* slots = args.in[kSlots].as<int32_t>();  // [n]
  const Region region_k(args.in[kRegionK], attrs, cpu_kernels(I).kv, false);
  const Region region_v(args.in[kRegionV], attrs, cpu_kernels(I).kv, true);
  const int64_t n_slots = region_k.n_slots < region_v.n_slots ? region_k.n_slots : region_v.n_slots;
  const int64_t head_dim = attrs.head_dim, n_q = q.absent() ? 0 : attrs.n_head, n_kv = attrs.n_head_kv;
  const int64_t heads = n_q + 2 * n_kv;  // of a token: queries, keys, values
  RopeHead rope(row, attrs.rope_style, table.shape.last(), head_dim);
  float buffer[kMaxHeadDim];
  const auto share = worker.share(k.shape[0] * heads);
  int64_t token = -1;
  for (int64_t i = share.begin; i < share.end; ++i) {
    const int64_t t = i / heads, h = i % heads;
    if (t != token) {
      if (!check_slot("rope_store", args, t, slots[t], n_slots, worker)) return;
      rope.set_token(table.row<float>(t));
      token = t;
    }
    if (h >= n_q + n_kv) {
      const int64_t head = h - n_q - n_kv;
      region_v.put(slots[t], head, v.row<float>(t) + head * head_dim);
      continue;
    }
    const bool is_q = h < n_q;
    const float* x = is_q ? q.row<float>(t) + h * head_dim : k.row<float>(t) + (h - n_q) * head_dim;
    const TensorView& norm = args.in[is_q ? kQNorm : kKNorm];
    if (!norm.absent()) {
      row.rms_norm(x, norm.as<float>(), attrs.eps, buffer, head_dim);
      x = buffer;
    }
    if (is_q) {
      rope.rotate(x, args.out[0].row<float>(t) + h * head_dim);
    } else {
      rope.rotate(x, buffer);
      region_k.put(slots[t], h - n_q, buffer);
    }
  }
}

template <IsaLevel I>
std::span<const Kernel> list(Op op) {
  static constexpr Kernel kStoreK[] = {{"kv_store_k", kIsaText<I>, accept_store, run_store<I, false>, nullptr, -1}};
  static constexpr Kernel kStoreV[] = {{"kv_store_v", kIsaText<I>, accept_store, run_store<I, true>, nullptr, -1}};
  static constexpr Kernel kRopeStore[] = {
      {"rope_store", kIsaText<I>, accept_rope_store, run_rope_store<I>, nullptr, 0}};
  switch (op) {
    case Op::kKvStoreK: return kStoreK;
    case Op::kKvStoreV: return kStoreV;
    case Op::kRopeStore: return kRopeStore;
    default: return {};
  }
}

}  // namespace

std::span<const Kernel> kv_kernels(Op op, IsaLevel isa) { MINFER_LIST_BY_ISA(list, op, isa); }

}  // namespace minfer::cpu
