// rms_norm, rms_norm_mul, rope: ops over rows or heads.
// Threads: groups and heads are shared out; one never spans workers.
#include "backend/cpu/ops/op_lists.h"
#include "backend/cpu/ops/rope_head.h"
#include "backend/cpu/select.h"

namespace minfer::cpu {

namespace {

Refusal accept_any(const NodeDesc&) { return {}; }

template <IsaLevel I, bool kHasWeight>
void run_rms_norm(const KernelArgs& args, Worker& worker) {
  const TensorView &x = args.in[0], &y = args.out[0];
  const int64_t d = x.shape.last();
  const float* w = kHasWeight ? args.in[1].as<float>() : nullptr;
  int64_t group = args.attrs->group;
  if (group == 0) group = d;
  const int64_t groups = d / group;
  const bool own_weights =
      kHasWeight && args.in[1].shape.last() == d;  // one weight per value of the row, not per group
  const auto share = worker.share(x.shape.rows() * groups);
  for (int64_t i = share.begin; i < share.end; ++i) {
    const int64_t row = i / groups, at = i % groups * group;
    cpu_kernels(I).row.rms_norm(x.row<float>(row) + at, own_weights ? w + at : w, args.attrs->eps,
                                y.row<float>(row) + at, group);
  }
}

Refusal accept_rope(const NodeDesc& node) {
  if (node.in[1].shape.last() > kMaxHeadDim) return "n_rot is above " + std::to_string(kMaxHeadDim);
  return {};
}

template <IsaLevel I>
void run_rope(const KernelArgs& args, Worker& worker) {
  const TensorView &x = args.in[0], &table = args.in[1], &y = args.out[0];
  const int64_t head_dim = args.attrs->head_dim, heads = x.shape.last() / head_dim;
  RopeHead rope(cpu_kernels(I).row, args.attrs->rope_style, table.shape.last(), head_dim);
  int64_t token = -1;
  const auto share = worker.share(x.shape.rows() * heads);
  for (int64_t i = share.begin; i < share.end; ++i) {
    const int64_t row = i / heads, at = i % heads * head_dim;
    if (row != token) rope.set_token(table.row<float>(row)), token = row;
    rope.rotate(x.row<float>(row) + at, y.row<float>(row) + at);
  }
}

template <IsaLevel I>
std::span<const Kernel> list(Op op) {
  static constexpr Kernel kNorm[] = {{"rms_norm", kIsaText<I>, accept_any, run_rms_norm<I, false>, nullptr, 0}};
  static constexpr Kernel kNormMul[] = {{"rms_norm_mul", kIsaText<I>, accept_any, run_rms_norm<I, true>, nullptr, 0}};
  static constexpr Kernel kRope[] = {{"rope", kIsaText<I>, accept_rope, run_rope<I>, nullptr, 0}};
  switch (op) {
    case Op::kRmsNorm: return kNorm;
    case Op::kRmsNormMul: return kNormMul;
    case Op::kRope: return kRope;
    default: return {};
  }
}

}  // namespace

std::span<const Kernel> row_kernels(Op op, IsaLevel isa) { MINFER_LIST_BY_ISA(list, op, isa); }

}  // namespace minfer::cpu
