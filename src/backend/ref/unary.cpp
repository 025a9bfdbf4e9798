// unary: attrs.act of every value; base/fmath.h defines them.
#include "backend/ref/ops.h"
#include "base/fmath.h"

namespace minfer::ref {
namespace {

float apply(Act act, float x) {
  switch (act) {
    case Act::kSilu: return silu_f32(x);
    case Act::kGeluTanh: return gelu_tanh_f32(x);
    case Act::kGeluErf: return gelu_erf_f32(x);
    case Act::kGeluQuick: return gelu_quick_f32(x);
    case Act::kRelu: return relu_f32(x);
    case Act::kRelu2: return relu_f32(x) * relu_f32(x);
    case Act::kTanh: return tanh_f32(x);
    case Act::kSigmoid: return sigmoid_f32(x);
  }
  return x;
}

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& x = args.in[0];  // f32 [..., d]
  const auto rows = worker.share(x.shape.rows());
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    for (int64_t i = 0; i < x.shape.last(); ++i)
      args.out[0].row<float>(t)[i] = apply(args.attrs->act, x.row<float>(t)[i]);
  }
}

}  // namespace

const Kernel kUnaryKernel = {"unary", "ref", accept_any, run, nullptr, 0};

}  // namespace minfer::ref
