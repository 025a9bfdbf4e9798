// mul: a * b, one operation per value; b has a's shape, or is a row that repeats along a's rows.
#include "backend/ref/ops.h"

namespace minfer::ref {
namespace {

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& a = args.in[0];  // f32 [..., d]
  const TensorView& b = args.in[1];  // f32 [n, d] or [group], d a multiple of group
  const auto rows = worker.share(a.shape.rows());
  const int64_t group = b.shape.last();
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const float* x = a.row<float>(t);
    const float* y = b.shape.rank == 1 ? b.as<float>() : b.row<float>(t);
    float* out = args.out[0].row<float>(t);
    for (int64_t g = 0; g < a.shape.last(); g += group) {
      for (int64_t i = 0; i < group; ++i) out[g + i] = x[g + i] * y[i];
    }
  }
}

}  // namespace

const Kernel kMulKernel = {"mul", "ref", accept_any, run, nullptr, 0};

}  // namespace minfer::ref
