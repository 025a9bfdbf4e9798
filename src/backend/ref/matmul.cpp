// matmul: out[t][r] = sum over k of x[t][k] * w[r][k]. See dot.h for the order of the sum.
// Threads: phase 1 quantizes the activations, split by tokens; phase 2 is split by weight rows.
#include "backend/ref/ops.h"
#include "backend/ref/matmul_rows.h"

namespace minfer::ref {
namespace {

Refusal accepts(const NodeDesc& node) { return plain_weight_refusal(node.in[1]); }

size_t scratch_bytes(const NodeDesc& node, int n_threads) {
  return matmul_scratch_bytes(node.in[1].dtype, node.in[1].shape.last(), node.in[0].shape.rows(), n_threads);
}

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& x = args.in[0];     // f32 [n, k]
  const TensorView& w = args.in[1];     // [m, k]
  const TensorView& out = args.out[0];  // f32 [n, m]
  const int64_t n = x.shape[0], m = w.shape[0], k = w.shape[1];
  MatMulScratch scratch(args.scratch, w.dtype, k, n, worker.index());
  scratch.quantize(x, worker);
  const auto rows = worker.share(m);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    scratch.load_row(w.row<std::byte>(r));
    for (int64_t t = 0; t < n; ++t) out.row<float>(t)[r] = scratch.dot(t, x.row<float>(t));
  }
}

}  // namespace

const Kernel kMatMulKernel = {"matmul", "ref", accepts, run, scratch_bytes, -1};

}  // namespace minfer::ref
