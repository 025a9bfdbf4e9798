// attn_mix: the weighted rows of V, tile by tile, merged in order of position and divided by the sum of weights.
// Errors: a position, sequence or page outside its limit.
#include <cmath>

#include "backend/ref/attn_tiles.h"
#include "backend/ref/kv.h"
#include "backend/ref/ops.h"
#include "base/fmath.h"

namespace minfer::ref {
namespace {

// One value of a tile's output.
float mix_tile(const KvRegion& v, const Visible& seen, const TileRange& tile, const float* w, int64_t head, int64_t i) {
  float acc = 0.0f;
  for (int64_t j = tile.begin; j < tile.end; ++j) {
    const int64_t slot = seen.slot(j);
    acc = v.dtype == DType::kQ8_0
              ? std::fma(w[j] * v.v_scale(slot, head, i), static_cast<float>(v.v_code(slot, head, i)), acc)
              : std::fma(w[j], v.v_value(slot, head, i), acc);
  }
  return acc;
}

void run(const KernelArgs& args, Worker& worker) {
  const Attrs& attrs = *args.attrs;
  const TensorView& weights = args.in[0];  // f32 [n, n_head, n_kv + 2 * n_kv / 256]
  const KvRegion v(args.in[1], attrs);
  const int64_t n_kv = softmax_n_kv(weights.shape[2]), per_group = attrs.n_head / attrs.n_head_kv;
  const auto share = worker.share(weights.shape[0] * attrs.n_head);
  for (int64_t th = share.begin; th < share.end; ++th) {
    const int64_t t = th / attrs.n_head, h = th % attrs.n_head;
    Visible seen;
    if (!find_visible("attn_mix", args, t, args.in[2], args.in[3], args.in[4], v.n_slots, n_kv, worker, &seen)) return;
    const float* w = weights.row<float>(th);
    const float* stats = w + n_kv;
    float* out = args.out[0].row<float>(t) + h * attrs.head_dim;
    float max = 0.0f, sum = 0.0f;
    bool first = true;
    for (int64_t tile = seen.lo / kTile; tile <= seen.pos / kTile; ++tile) {
      const TileRange range(tile, seen.lo, seen.pos);
      const float m = stats[2 * tile], l = stats[2 * tile + 1];
      const float merged = first ? m : max_nan(max, m);
      const float a = first ? 0.0f : exp_f32(max - merged), b = first ? 1.0f : exp_f32(m - merged);
      for (int64_t i = 0; i < attrs.head_dim; ++i) {
        const float o = mix_tile(v, seen, range, w, h / per_group, i);
        out[i] = first ? o : std::fma(o, b, out[i] * a);
      }
      sum = first ? l : std::fma(l, b, sum * a);
      max = merged;
      first = false;
    }
    for (int64_t i = 0; i < attrs.head_dim; ++i) out[i] = out[i] / sum;
  }
}

}  // namespace

const Kernel kAttnMixKernel = {"attn_mix", "ref", accept_any, run, nullptr, -1};

}  // namespace minfer::ref
