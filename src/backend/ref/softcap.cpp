// softcap: c * tanh(x / c).
#include "backend/ref/ops.h"
#include "base/fmath.h"

namespace minfer::ref {
namespace {

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& x = args.in[0];  // f32 [..., d]
  const auto rows = worker.share(x.shape.rows());
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    for (int64_t i = 0; i < x.shape.last(); ++i) {
      args.out[0].row<float>(t)[i] = softcap_f32(x.row<float>(t)[i], args.attrs->softcap);
    }
  }
}

}  // namespace

const Kernel kSoftcapKernel = {"softcap", "ref", accept_any, run, nullptr, 0};

}  // namespace minfer::ref
