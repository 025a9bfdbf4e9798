// rope_table: cosines and sines of position * inv_freq, f64 rounded once to f32.
#include "backend/ref/ops.h"
#include "base/fmath.h"

namespace minfer::ref {
namespace {

void run(const KernelArgs& args, Worker& worker) {
  const int32_t* positions = args.in[0].as<int32_t>();  // [n]
  const double* inv_freq = args.in[1].as<double>();     // [n_rot / 2]
  const int64_t half = args.in[1].shape[0];
  const float scale = args.attrs->scale;
  const auto rows = worker.share(args.in[0].shape[0]);
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    float* out = args.out[0].row<float>(t);  // [n_rot]: cosines, then sines
    for (int64_t i = 0; i < half; ++i) {
      const SinCos sc = sincos_f64(static_cast<double>(positions[t]) * inv_freq[i]);
      const float c = static_cast<float>(sc.cos), s = static_cast<float>(sc.sin);
      out[i] = scale == 1.0f ? c : c * scale;
      out[half + i] = scale == 1.0f ? s : s * scale;
    }
  }
}

}  // namespace

const Kernel kRopeTableKernel = {"rope_table", "ref", accept_any, run, nullptr, -1};

}  // namespace minfer::ref
