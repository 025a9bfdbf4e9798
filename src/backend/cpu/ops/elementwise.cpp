// add, mul, scale, unary, softcap, gated_act, moe_combine.
// Threads: the values of all rows are one line, cut into one piece per worker.
#include "backend/cpu/ops/op_lists.h"
#include "backend/cpu/select.h"

namespace minfer::cpu {

namespace {

constexpr int64_t kGrain = 256;  // values: 1 KiB, no two workers write one cache line

// Calls fn(row, begin, end) for the parts of rows [n][d] that are this worker's.
template <typename Fn>
void each_part(Worker& worker, int64_t n, int64_t d, Fn fn) {
  const auto share = worker.share(n * d, kGrain);
  for (int64_t i = share.begin; i < share.end;) {
    const int64_t row = i / d, begin = i % d;
    const int64_t end = begin + (share.end - i) < d ? begin + (share.end - i) : d;
    fn(row, begin, end);
    i += end - begin;
  }
}

Refusal accept_any(const NodeDesc&) { return {}; }

template <IsaLevel I, bool kMul>
void run_binary(const KernelArgs& args, Worker& worker) {
  const ElementwiseKernels& k = cpu_kernels(I).elementwise;
  const auto op = kMul ? k.mul : k.add;
  const TensorView &a = args.in[0], &b = args.in[1], &y = args.out[0];
  const bool repeats = b.shape.rank == 1;
  const int64_t group = b.shape.last();  // add: the whole row
  each_part(worker, a.shape.rows(), a.shape.last(), [&](int64_t row, int64_t begin, int64_t end) {
    const float* other = repeats ? b.as<float>() : b.row<float>(row);
    for (int64_t i = begin; i < end;) {
      const int64_t at = i % group, n = group - at < end - i ? group - at : end - i;
      op(a.row<float>(row) + i, other + at, y.row<float>(row) + i, n);
      i += n;
    }
  });
}

template <IsaLevel I>
void run_scale(const KernelArgs& args, Worker& worker) {
  const TensorView &x = args.in[0], &y = args.out[0];
  each_part(worker, x.shape.rows(), x.shape.last(), [&](int64_t row, int64_t begin, int64_t end) {
    cpu_kernels(I).elementwise.scale(x.row<float>(row) + begin, args.attrs->scale, y.row<float>(row) + begin,
                                     end - begin);
  });
}

template <IsaLevel I>
void run_softcap(const KernelArgs& args, Worker& worker) {
  const TensorView &x = args.in[0], &y = args.out[0];
  each_part(worker, x.shape.rows(), x.shape.last(), [&](int64_t row, int64_t begin, int64_t end) {
    cpu_kernels(I).elementwise.softcap(x.row<float>(row) + begin, args.attrs->softcap, y.row<float>(row) + begin,
                                       end - begin);
  });
}

// The tables are in the order of Act.
static_assert(static_cast<int>(Act::kSilu) == 0 && static_cast<int>(Act::kGeluTanh) == 1 &&
              static_cast<int>(Act::kGeluErf) == 2 && static_cast<int>(Act::kGeluQuick) == 3 &&
              static_cast<int>(Act::kRelu) == 4 && static_cast<int>(Act::kRelu2) == 5 &&
              static_cast<int>(Act::kTanh) == 6 && static_cast<int>(Act::kSigmoid) == 7);

template <IsaLevel I>
void run_unary(const KernelArgs& args, Worker& worker) {
  const auto op = cpu_kernels(I).elementwise.unary[static_cast<int>(args.attrs->act)];
  const TensorView &x = args.in[0], &y = args.out[0];
  each_part(worker, x.shape.rows(), x.shape.last(), [&](int64_t row, int64_t begin, int64_t end) {
    op(x.row<float>(row) + begin, y.row<float>(row) + begin, end - begin);
  });
}

template <IsaLevel I>
void run_gated(const KernelArgs& args, Worker& worker) {
  const auto op = cpu_kernels(I).elementwise.gated[static_cast<int>(args.attrs->act)];
  const TensorView &gate = args.in[0], &up = args.in[1], &y = args.out[0];
  each_part(worker, gate.shape.rows(), gate.shape.last(), [&](int64_t row, int64_t begin, int64_t end) {
    op(gate.row<float>(row) + begin, up.row<float>(row) + begin, y.row<float>(row) + begin, end - begin);
  });
}

template <IsaLevel I>
void run_moe_combine(const KernelArgs& args, Worker& worker) {
  const ElementwiseKernels& k = cpu_kernels(I).elementwise;
  const TensorView &x = args.in[0], &weights = args.in[1], &y = args.out[0];  // [n, top_k, d], [n, top_k], [n, d]
  const int64_t top_k = x.shape[1];
  each_part(worker, x.shape[0], x.shape[2], [&](int64_t row, int64_t begin, int64_t end) {
    const float* w = weights.row<float>(row);
    float* out = y.row<float>(row) + begin;
    k.scale(x.row<float>(row * top_k) + begin, w[0], out, end - begin);
    for (int64_t j = 1; j < top_k; ++j) k.scale_add(x.row<float>(row * top_k + j) + begin, w[j], out, end - begin);
  });
}

template <IsaLevel I>
std::span<const Kernel> list(Op op) {
  static constexpr Kernel kAdd[] = {{"add", kIsaText<I>, accept_any, run_binary<I, false>, nullptr, 0}};
  static constexpr Kernel kMul[] = {{"mul", kIsaText<I>, accept_any, run_binary<I, true>, nullptr, 0}};
  static constexpr Kernel kScale[] = {{"scale", kIsaText<I>, accept_any, run_scale<I>, nullptr, 0}};
  static constexpr Kernel kSoftcap[] = {{"softcap", kIsaText<I>, accept_any, run_softcap<I>, nullptr, 0}};
  static constexpr Kernel kUnary[] = {{"unary", kIsaText<I>, accept_any, run_unary<I>, nullptr, 0}};
  static constexpr Kernel kGated[] = {{"gated_act", kIsaText<I>, accept_any, run_gated<I>, nullptr, 0}};
  static constexpr Kernel kCombine[] = {{"moe_combine", kIsaText<I>, accept_any, run_moe_combine<I>, nullptr, -1}};
  switch (op) {
    case Op::kAdd: return kAdd;
    case Op::kMul: return kMul;
    case Op::kScale: return kScale;
    case Op::kSoftcap: return kSoftcap;
    case Op::kUnary: return kUnary;
    case Op::kGatedAct: return kGated;
    case Op::kMoeCombine: return kCombine;
    default: return {};
  }
}

}  // namespace

std::span<const Kernel> elementwise_kernels(Op op, IsaLevel isa) { MINFER_LIST_BY_ISA(list, op, isa); }

}  // namespace minfer::cpu
