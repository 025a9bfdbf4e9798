// moe_route: softmax over the experts, then the top_k by weight (ties: the lower id) in descending order.
// A row with a NaN weight has only NaN weights and takes the experts 0..top_k-1.
// Threads: tokens are shared out.
#include <cstring>

#include "backend/cpu/ops/op_lists.h"
#include "backend/cpu/select.h"

namespace minfer::cpu {

namespace {

Refusal accept_any(const NodeDesc&) { return {}; }

// Weights of one row per worker, on cache lines of its own.
int64_t row_bytes(int64_t n_expert) { return (n_expert * 4 + 63) / 64 * 64; }
size_t scratch(const NodeDesc& node, int n_threads) {
  return static_cast<size_t>(n_threads * row_bytes(node.in[0].shape[1]));
}

// One pass over the experts with the best so far kept in order: an expert goes in front of those it beats.
void choose(const float* p,  // [n_expert], all NaN or none
            int64_t n_expert, int64_t top_k,
            int32_t* ids,      // [top_k]
            float* weights) {  // [top_k]
  int64_t n = 0;
  for (int64_t e = 0; e < n_expert; ++e) {
    if (n == top_k && !(p[e] > weights[n - 1])) continue;
    int64_t at = n < top_k ? n++ : n - 1;
    for (; at > 0 && p[e] > weights[at - 1]; --at) {
      weights[at] = weights[at - 1];
      ids[at] = ids[at - 1];
    }
    weights[at] = p[e];
    ids[at] = static_cast<int32_t>(e);
  }
}

template <IsaLevel I>
void run(const KernelArgs& args, Worker& worker) {
  const TensorView& logits = args.in[0];  // f32 [n, n_expert]
  const int64_t n_expert = logits.shape[1], top_k = args.attrs->top_k;
  float* p = reinterpret_cast<float*>(args.scratch + worker.index() * row_bytes(n_expert));
  const auto share = worker.share(logits.shape[0]);
  for (int64_t t = share.begin; t < share.end; ++t) {
    float* weights = args.out[1].row<float>(t);
    cpu_kernels(I).row.softmax(logits.row<float>(t), p, n_expert);
    choose(p, n_expert, top_k, args.out[0].row<int32_t>(t), weights);
    if (!args.attrs->norm_topk) continue;
    float chosen = 0.0f;
    for (int64_t j = 0; j < top_k; ++j) chosen += weights[j];
    for (int64_t j = 0; j < top_k; ++j) weights[j] = weights[j] / chosen;
  }
}

template <IsaLevel I>
std::span<const Kernel> list(Op op) {
  static constexpr Kernel kRoute[] = {{"moe_route", kIsaText<I>, accept_any, run<I>, scratch, -1}};
  if (op == Op::kMoeRoute) return kRoute;
  return {};
}

}  // namespace

std::span<const Kernel> moe_route_kernels(Op op, IsaLevel isa) { MINFER_LIST_BY_ISA(list, op, isa); }

}  // namespace minfer::cpu
