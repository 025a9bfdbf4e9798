#include "backend/cpu/matmul/moe.h"

#include <algorithm>

#include "backend/cpu/matmul/tiling.h"

namespace minfer::cpu {
namespace {

constexpr int64_t kStreamBytes = 64 << 10;  // weights handed out at once, as in dense.cpp
constexpr int64_t kPrefillGroups = 4;

int64_t round64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Everything about sizes. A pair is one (token, chosen expert); pair p belongs to token p / top_k.
struct Plan {
  int64_t pairs, k, m, n_expert;
  bool is_float;
  int64_t act;                    // bytes of all experts' activations
  int64_t order, offset, unpack;  // bytes per worker: pairs by expert; first pair of every expert; unpacked codes

  Plan(const MatmulKernels& kernels, const TensorView& x, const TensorView& w, const TensorView& ids) {
    pairs = ids.shape.count();
    k = x.shape.last();
    n_expert = w.shape[0];
    m = w.shape[1];
    is_float = packed_is_float(packed_format(w.dtype));
    // An expert's c tokens take the room of its tiles, padding included. The widest ratio of room to tokens, over every
    // c up to a full tile, bounds the sum over experts; expert e's room starts where e's first pair would.
    act = round64(pairs * slot_bytes(kernels));
    order = round64(pairs * 4);
    offset = round64((n_expert + 1) * 4);
    unpack = unpack_bytes(kernels);
  }
  // Room per pair that holds every tiling of any number of pairs.
  int64_t slot_bytes(const MatmulKernels& kernels) const {
    int64_t most = 0;
    for (int64_t c = 1; c <= 2 * kMaxTile; ++c) {
      const int64_t bytes = is_float ? f32_bytes(kernels, c, k) : q8_bytes(kernels, c, k);
      most = std::max(most, (bytes + c - 1) / c);
    }
    return round64(most);
  }
  int64_t bytes(int n_threads) const { return act + n_threads * (order + offset + unpack); }
};

}  // namespace

Refusal accept_moe(const NodeDesc& node) {
  const TensorView& w = node.in[1];
  if (w.layout != Layout::kPacked) return "needs packed weights, got plain";
  if (w.shape.rank != 3) return "needs expert weights [n_expert, m, k]";
  if (packed_format(w.dtype) == kFmtCount) {
    return "no matmul kernel for weights of type " + std::string(dtype_info(w.dtype).name);
  }
  return {};
}

size_t moe_scratch(const MatmulKernels& kernels, const NodeDesc& node, int n_threads) {
  return static_cast<size_t>(Plan(kernels, node.in[0], node.in[1], node.in[2]).bytes(n_threads));
}

void run_moe(const MatmulKernels& kernels, const KernelArgs& args, Worker& worker) {
  const TensorView &x = args.in[0], &w = args.in[1], &ids = args.in[2];
  const Plan plan(kernels, x, w, ids);
  if (plan.pairs == 0) return;
  MINFER_DCHECK(static_cast<int64_t>(args.scratch_bytes) >= plan.bytes(worker.count()));
  const int64_t top_k = ids.shape.last(), n = ids.shape.rows();

  // Every worker sorts the pairs by expert for itself: cheaper than waiting for one that does.
  uint8_t* act_base = reinterpret_cast<uint8_t*>(args.scratch);
  uint8_t* own = act_base + plan.act + worker.index() * (plan.order + plan.offset + plan.unpack);
  int32_t* order = reinterpret_cast<int32_t*>(own);
  int32_t* offset = reinterpret_cast<int32_t*>(own + plan.order);
  uint8_t* unpacked = own + plan.order + plan.offset;
  std::fill_n(offset, plan.n_expert + 1, 0);
  for (int64_t t = 0; t < n; ++t) {
    const int32_t* row = ids.row<const int32_t>(t);
    for (int64_t j = 0; j < top_k; ++j) {
      if (row[j] < 0 || row[j] >= plan.n_expert) {  // every worker finds the same and leaves before the barrier
        worker.fail(make_error(ErrorCode::kOutOfRange, "[moe_matmul] layer {}: token {} names expert {}, there are {}",
                               args.attrs->layer, t, row[j], plan.n_expert));
        return;
      }
      ++offset[row[j]];
    }
  }
  int32_t sum = 0;
  for (int64_t e = 0; e <= plan.n_expert; ++e) {
    const int32_t c = e < plan.n_expert ? offset[e] : 0;
    offset[e] = sum;
    sum += c;
  }
  for (int64_t t = 0; t < n; ++t) {
    const int32_t* row = ids.row<const int32_t>(t);
    for (int64_t j = 0; j < top_k; ++j) order[offset[row[j]]++] = static_cast<int32_t>(t * top_k + j);
  }
  for (int64_t e = plan.n_expert; e > 0; --e) offset[e] = offset[e - 1];  // each had moved to its end
  offset[0] = 0;

  const int64_t slot = plan.slot_bytes(kernels);
  const auto activations = [&](int64_t e) {
    Activations a;
    a.kernels = &kernels;
    a.k = plan.k;
    const int64_t c = offset[e + 1] - offset[e];
    uint8_t* base = act_base + offset[e] * slot;
    if (plan.is_float) {
      a.f = make_tiling(kernels.float_widths, c);
      a.f32 = reinterpret_cast<float*>(base);
    } else {
      a.q = make_tiling(kernels.widths, c);
      a.q8 = base;
    }
    return a;
  };
  const int32_t divisor = x.shape.rank == 3 ? 1 : static_cast<int32_t>(top_k);

  for (int64_t e = 0, unit = 0; e < plan.n_expert; ++e) {
    if (offset[e + 1] == offset[e]) continue;
    const Activations a = activations(e);
    const Rows rows{x.data, x.row_bytes, order + offset[e], divisor};
    for (int64_t i = 0, count = activation_pieces(a); i < count; ++i, ++unit) {
      if (unit % worker.count() == worker.index()) fill_activations(a, rows, i, i + 1);
    }
  }
  if (!worker.barrier()) return;

  Piece p;
  p.format = packed_format(w.dtype);
  p.group_bytes = packed_group_bytes(w.dtype, plan.k);
  p.segment_bytes = packed_group_bytes(w.dtype, kSegment);
  p.m = plan.m;
  p.bias = nullptr;
  const int64_t groups = packed_groups(plan.m);
  const int64_t step = kernels.formats[p.format].groups;
  int64_t chunk =
      plan.pairs > kMaxTile * plan.n_expert ? kPrefillGroups : std::max<int64_t>(1, kStreamBytes / p.group_bytes);
  chunk = std::min(chunk, std::max<int64_t>(1, groups / (2 * worker.count())));
  chunk = (chunk + step - 1) / step * step;
  const int64_t per_expert = (groups + chunk - 1) / chunk;
  int64_t e = 0, done = 0;  // chunks of the experts before e that have tokens
  for (int64_t i; (i = args.counter->fetch_add(1, std::memory_order_relaxed)) >= 0;) {
    while (e < plan.n_expert && (offset[e + 1] == offset[e] || i >= done + per_expert)) {
      if (offset[e + 1] != offset[e]) done += per_expert;
      ++e;
    }
    if (e == plan.n_expert) break;
    const Activations a = activations(e);
    p.w = reinterpret_cast<const uint8_t*>(w.data) + e * groups * p.group_bytes;
    p.y = Rows{args.out[0].data, args.out[0].row_bytes, order + offset[e]};
    p.group0 = (i - done) * chunk;
    p.group1 = std::min(p.group0 + chunk, groups);
    p.tile0 = 0;
    p.tile1 = a.tiling(plan.is_float).count;
    run_piece(a, p, unpacked);
  }
}

}  // namespace minfer::cpu
