// moe_route: softmax over the experts, the top_k by weight (ties: the lower id) in descending order.
// A row with a NaN weight has only NaN weights and takes the experts 0..top_k-1.
#include "backend/ref/attn_tiles.h"
#include "backend/ref/ops.h"
#include "base/fmath.h"

namespace minfer::ref {
namespace {

// Scratch: the softmax of one row per worker.
size_t scratch_bytes(const NodeDesc& node, int n_threads) {
  return static_cast<size_t>(n_threads) * static_cast<size_t>(node.in[0].shape[1]) * sizeof(float);
}

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& logits = args.in[0];  // f32 [n, n_expert]
  const int64_t n_expert = logits.shape[1], top_k = args.attrs->top_k;
  float* p = reinterpret_cast<float*>(args.scratch) + worker.index() * n_expert;
  const auto rows = worker.share(logits.shape[0]);
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const float* x = logits.row<float>(t);
    float max = x[0];
    for (int64_t e = 1; e < n_expert; ++e) max = max_nan(max, x[e]);
    float sum = 0.0f;
    for (int64_t e = 0; e < n_expert; ++e) sum += p[e] = exp_f32(x[e] - max);
    for (int64_t e = 0; e < n_expert; ++e) p[e] = p[e] / sum;

    int32_t* ids = args.out[0].row<int32_t>(t);  // [top_k]
    float* weights = args.out[1].row<float>(t);  // [top_k]
    for (int64_t j = 0; j < top_k; ++j) {
      const auto taken = [&](int64_t e) {
        for (int64_t i = 0; i < j; ++i) {
          if (ids[i] == e) return true;
        }
        return false;
      };
      int64_t best = -1;
      for (int64_t e = 0; e < n_expert; ++e) {
        if (!taken(e) && (best < 0 || p[e] > p[best])) best = e;
      }
      ids[j] = static_cast<int32_t>(best);
      weights[j] = p[best];
    }
    if (!args.attrs->norm_topk) continue;
    float chosen = 0.0f;
    for (int64_t j = 0; j < top_k; ++j) chosen += weights[j];
    for (int64_t j = 0; j < top_k; ++j) weights[j] = weights[j] / chosen;
  }
}

}  // namespace

const Kernel kMoeRouteKernel = {"moe_route", "ref", accept_any, run, scratch_bytes, -1};

}  // namespace minfer::ref
