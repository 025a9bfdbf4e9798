// attn_mix: weights f32[n, n_head, n_kv + 2 * n_kv / 256], region V, positions, seqs, block_table -> f32[n, n_head *
// head_dim].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_attn_mix(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kAttnMix, attrs, in);
  MINFER_TRY(rule.want_attention());
  MINFER_TRY(rule.want(0, "weights", DType::kF32, {kAnyRows, attrs.n_head, kAnyDim}));
  MINFER_TRY(rule.must(
      rule.shape(0)[2] % 258 == 0,
      fmt::format("input 0 (weights): rows of {}, expected a multiple of 258 (256 weights, maximum and sum per tile)",
                  rule.shape(0)[2])));
  MINFER_TRY(rule.want_region(1, "region_v"));
  MINFER_TRY(rule.want_lookup(2, rule.shape(0)[0]));
  return one_f32({rule.shape(0)[0], int64_t{attrs.n_head} * attrs.head_dim});
}

}  // namespace minfer
