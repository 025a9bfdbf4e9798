// attn_softmax: per tile of 256 positions, weights exp(score - maximum), their maximum and their sum.
// A position that is not visible has weight 0; a tile without visible positions has maximum -infinity and sum 0.
// Errors: a position outside the scores.
#include <limits>

#include "backend/ref/attn_tiles.h"
#include "backend/ref/kv.h"
#include "backend/ref/ops.h"
#include "base/fmath.h"

namespace minfer::ref {
namespace {

void run(const KernelArgs& args, Worker& worker) {
  const TensorView& scores = args.in[0];                // f32 [n, n_head, n_kv]
  const int32_t* positions = args.in[1].as<int32_t>();  // [n]
  const int64_t n_head = scores.shape[1], n_kv = scores.shape[2];
  const auto share = worker.share(scores.shape[0] * n_head);
  for (int64_t th = share.begin; th < share.end; ++th) {
    const int64_t t = th / n_head, pos = positions[t], lo = visible_lo(pos, args.attrs->window);
    if (pos < 0 || pos >= n_kv) {
      worker.fail(make_error(ErrorCode::kOutOfRange, "[attn_softmax] token {}{}: position {} is outside 0..{}", t,
                             layer_text(*args.attrs), pos, n_kv - 1));
      return;
    }
    const float* s = scores.row<float>(th);
    float* w = args.out[0].row<float>(th);
    float* stats = w + n_kv;
    for (int64_t tile = 0; tile < n_kv / kTile; ++tile) {
      const TileRange seen(tile, lo, pos);
      float m = -std::numeric_limits<float>::infinity();
      for (int64_t j = seen.begin; j < seen.end; ++j) m = max_nan(m, s[j]);
      float lane[kLanes] = {};
      for (int64_t j = tile * kTile; j < (tile + 1) * kTile; ++j) {
        w[j] = 0.0f;
        if (j < seen.begin || j >= seen.end) continue;
        w[j] = exp_f32(s[j] - m);
        lane[j % kLanes] += w[j];
      }
      for (int64_t half = kLanes / 2; half > 0; half /= 2) {
        for (int64_t i = 0; i < half; ++i) lane[i] += lane[i + half];
      }
      stats[2 * tile] = m;
      stats[2 * tile + 1] = lane[0];
    }
  }
}

}  // namespace

const Kernel kAttnSoftmaxKernel = {"attn_softmax", "ref", accept_any, run, nullptr, -1};

}  // namespace minfer::ref
