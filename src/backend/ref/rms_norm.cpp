// rms_norm: x * r, r = 1 / sqrt(mean of squares + eps), over groups of attrs.group values (0 = the whole row).
#include <cmath>

#include "backend/ref/ops.h"

namespace minfer::ref {
namespace {

constexpr int64_t kLanes = 64;  // f64 partial sums: eight 512-bit vectors

float inverse_rms(const float* x, int64_t d, float eps) {
  double lane[kLanes] = {};
  for (int64_t i = 0; i < d; ++i) lane[i % kLanes] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; ++j) lane[j] += lane[j + half];
  }
  const double mean = lane[0] / static_cast<double>(d);
  return static_cast<float>(1.0 / std::sqrt(mean + static_cast<double>(eps)));
}

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& x = args.in[0];  // f32 [n, d]
  const int64_t d = x.shape[1], group = args.attrs->group == 0 ? d : args.attrs->group;
  const auto rows = worker.share(x.shape[0]);
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    for (int64_t g = 0; g < d; g += group) {
      const float* in = x.row<float>(t) + g;
      float* out = args.out[0].row<float>(t) + g;
      const float r = inverse_rms(in, group, args.attrs->eps);
      for (int64_t i = 0; i < group; ++i) out[i] = in[i] * r;
    }
  }
}

}  // namespace

const Kernel kRmsNormKernel = {"rms_norm", "ref", accept_any, run, nullptr, 0};

}  // namespace minfer::ref
