// rope: rotates the first n_rot values of every head by the token's angles; the rest is copied.
#include <cmath>

#include "backend/ref/ops.h"

namespace minfer::ref {
namespace {

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& x = args.in[0];      // f32 [n, heads * head_dim]
  const TensorView& table = args.in[1];  // f32 [n, n_rot]
  const int64_t head_dim = args.attrs->head_dim, n_rot = table.shape[1], half = n_rot / 2;
  const bool neox = args.attrs->rope_style == RopeStyle::kNeox;
  const auto rows = worker.share(x.shape[0]);
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const float* cosines = table.row<float>(t);
    const float* sines = cosines + half;
    for (int64_t h = 0; h < x.shape[1]; h += head_dim) {
      const float* in = x.row<float>(t) + h;
      float* out = args.out[0].row<float>(t) + h;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t ia = neox ? i : 2 * i, ib = neox ? i + half : 2 * i + 1;
        const float a = in[ia], b = in[ib];
        out[ia] = std::fma(a, cosines[i], -(b * sines[i]));
        out[ib] = std::fma(a, sines[i], b * cosines[i]);
      }
      for (int64_t i = n_rot; i < head_dim; ++i) out[i] = in[i];
    }
  }
}

}  // namespace

const Kernel kRopeKernel = {"rope", "ref", accept_any, run, nullptr, 0};

}  // namespace minfer::ref
