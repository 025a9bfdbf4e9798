// attn_scores: out[t][h][j] = softcap(scale * q[t][h] . k[j]) for the positions j that token t sees, -infinity
// elsewhere. Errors: a position, sequence or page outside its limit.
#include <cmath>
#include <limits>

#include "backend/ref/kv.h"
#include "backend/ref/ops.h"
#include "backend/ref/q8a.h"
#include "base/fmath.h"

namespace minfer::ref {
namespace {

constexpr int64_t kMaxHeadBlocks = 64;  // q8_0 heads of up to 2048 values

Refusal accepts(const NodeDesc& node) {
  if (node.attrs.head_dim > kMaxHeadBlocks * kQ8aBlock)
    return "head_dim above " + std::to_string(kMaxHeadBlocks * kQ8aBlock);
  return {};
}

float score_float(const KvRegion& k, int64_t slot, int64_t head, const float* q) {
  float acc = 0.0f;
  for (int64_t i = 0; i < k.head_dim; ++i) acc = std::fma(q[i], k.k_value(slot, head, i), acc);
  return acc;
}

float score_q8(const KvRegion& k, int64_t slot, int64_t head, const Q8aBlock* q) {
  float acc = 0.0f;
  for (int64_t b = 0; b < k.head_dim / 32; ++b) {
    int32_t dot = 0;
    for (int64_t i = 0; i < 32; ++i) dot += q[b].q[i] * k.k_code(slot, head, b * 32 + i);
    acc = std::fma(static_cast<float>(dot), k.k_scale(slot, head, b * 32) * q[b].d, acc);
  }
  return acc;
}

void run(const KernelArgs& args, Worker& worker) {
  const Attrs& attrs = *args.attrs;
  const TensorView& q = args.in[0];  // f32 [n, n_head * head_dim]
  const KvRegion k(args.in[1], attrs);
  const int64_t n_kv = attrs.n_kv, per_group = attrs.n_head / attrs.n_head_kv;
  const auto share = worker.share(q.shape[0] * attrs.n_head);
  for (int64_t th = share.begin; th < share.end; ++th) {
    const int64_t t = th / attrs.n_head, h = th % attrs.n_head;
    Visible seen;
    if (!find_visible("attn_scores", args, t, args.in[2], args.in[3], args.in[4], k.n_slots, n_kv, worker, &seen))
      return;
    const float* query = q.row<float>(t) + h * attrs.head_dim;
    Q8aBlock quantized[kMaxHeadBlocks];
    if (k.dtype == DType::kQ8_0) quantize_q8a(query, attrs.head_dim, quantized);
    float* out = args.out[0].row<float>(th);
    for (int64_t j = 0; j < n_kv; ++j) {
      if (j < seen.lo || j > seen.pos) {
        out[j] = -std::numeric_limits<float>::infinity();
        continue;
      }
      const int64_t slot = seen.slot(j);
      const float acc = k.dtype == DType::kQ8_0 ? score_q8(k, slot, h / per_group, quantized)
                                                : score_float(k, slot, h / per_group, query);
      const float score = acc * attrs.scale;
      out[j] = attrs.softcap == 0.0f ? score : softcap_f32(score, attrs.softcap);
    }
  }
}

}  // namespace

const Kernel kAttnScoresKernel = {"attn_scores", "ref", accepts, run, nullptr, -1};

}  // namespace minfer::ref
