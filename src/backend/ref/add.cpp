// add: a + b, one operation per value; b is a row of d values or has a's shape.
#include "backend/ref/ops.h"

namespace minfer::ref {
namespace {

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& a = args.in[0];  // f32 [..., d]
  const TensorView& b = args.in[1];  // f32 [n, d] or [d]
  const auto rows = worker.share(a.shape.rows());
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const float* x = a.row<float>(t);
    const float* y = b.shape.rank == 1 ? b.as<float>() : b.row<float>(t);
    float* out = args.out[0].row<float>(t);
    for (int64_t i = 0; i < a.shape.last(); ++i) out[i] = x[i] + y[i];
  }
}

}  // namespace

const Kernel kAddKernel = {"add", "ref", accept_any, run, nullptr, 0};

}  // namespace minfer::ref
