// moe_combine: acc = y_0 * w_0, then acc = fma(y_j, w_j, acc), in the router's order.
#include <cmath>

#include "backend/ref/ops.h"

namespace minfer::ref {
namespace {

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& y = args.in[0];        // f32 [n, top_k, d]
  const TensorView& weights = args.in[1];  // f32 [n, top_k]
  const int64_t top_k = y.shape[1], d = y.shape[2];
  const auto rows = worker.share(y.shape[0]);
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const float* w = weights.row<float>(t);
    float* out = args.out[0].row<float>(t);
    for (int64_t i = 0; i < d; ++i) {
      float acc = y.row<float>(t * top_k)[i] * w[0];
      for (int64_t j = 1; j < top_k; ++j) acc = std::fma(y.row<float>(t * top_k + j)[i], w[j], acc);
      out[i] = acc;
    }
  }
}

}  // namespace

const Kernel kMoeCombineKernel = {"moe_combine", "ref", accept_any, run, nullptr, -1};

}  // namespace minfer::ref
