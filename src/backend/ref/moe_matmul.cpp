// moe_matmul: out[t][j] = x[t] (or x[t][j]) times the transposed weights of expert ids[t][j].
// Errors:  an expert id outside the weights.
// Threads: as matmul: quantize by rows of x, then split by weight rows.
#include "backend/ref/matmul_rows.h"
#include "backend/ref/ops.h"

namespace minfer::ref {
namespace {

Refusal accepts(const NodeDesc& node) { return plain_weight_refusal(node.in[1]); }

size_t scratch_bytes(const NodeDesc& node, int n_threads) {
  return matmul_scratch_bytes(node.in[1].dtype, node.in[1].shape.last(), node.in[0].shape.rows(), n_threads);
}

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& x = args.in[0];     // f32 [n, k] or [n, top_k, k]
  const TensorView& w = args.in[1];     // [n_expert, m, k]
  const TensorView& ids = args.in[2];   // i32 [n, top_k]
  const TensorView& out = args.out[0];  // f32 [n, top_k, m]
  const int64_t n = ids.shape[0], top_k = ids.shape[1], n_expert = w.shape[0], m = w.shape[1], k = w.shape[2];
  MatMulScratch scratch(args.scratch, w.dtype, k, x.shape.rows(), worker.index());
  scratch.quantize(x, worker);
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t j = 0; j < top_k; ++j) {
      const int32_t e = ids.row<int32_t>(t)[j];
      if (e < 0 || e >= n_expert) {
        worker.fail(make_error(ErrorCode::kOutOfRange, "[moe_matmul] token {}{}: expert {} is outside the {} there are",
                               t, layer_text(*args.attrs), e, n_expert));
        return;
      }
    }
  }
  const auto rows = worker.share(m);
  for (int64_t e = 0; e < n_expert; ++e) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      bool loaded = false;  // a row of weights is decoded once, and only if some token wants its expert
      for (int64_t t = 0; t < n; ++t) {
        for (int64_t j = 0; j < top_k; ++j) {
          if (ids.row<int32_t>(t)[j] != e) continue;
          if (!loaded) scratch.load_row(w.row<std::byte>(e * m + r));
          loaded = true;
          const int64_t xr = x.shape.rank == 2 ? t : t * top_k + j;
          out.row<float>(t * top_k + j)[r] = scratch.dot(xr, x.row<float>(xr));
        }
      }
    }
  }
}

}  // namespace

const Kernel kMoeMatMulKernel = {"moe_matmul", "ref", accepts, run, scratch_bytes, -1};

}  // namespace minfer::ref
