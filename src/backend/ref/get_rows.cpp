// get_rows: out[i] = x[rows[i]].
// Errors: a row outside x.
#include <cstring>

#include "backend/ref/ops.h"

namespace minfer::ref {
namespace {

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& x = args.in[0];                // f32 [n, d]
  const int32_t* rows = args.in[1].as<int32_t>();  // [m]
  const auto share = worker.share(args.in[1].shape[0]);
  for (int64_t i = share.begin; i < share.end; ++i) {
    if (rows[i] < 0 || rows[i] >= x.shape[0]) {
      worker.fail(make_error(ErrorCode::kOutOfRange, "[get_rows] entry {}{}: row {} is outside the {} rows there are",
                             i, layer_text(*args.attrs), rows[i], x.shape[0]));
      return;
    }
    std::memcpy(args.out[0].row<float>(i), x.row<float>(rows[i]), static_cast<size_t>(x.shape[1]) * sizeof(float));
  }
}

}  // namespace

const Kernel kGetRowsKernel = {"get_rows", "ref", accept_any, run, nullptr, -1};

}  // namespace minfer::ref
