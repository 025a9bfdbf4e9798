// attn_scores: q f32[n, n_head * head_dim], region K, positions, seqs, block_table -> f32[n, n_head, n_kv].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_attn_scores(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kAttnScores, attrs, in);
  MINFER_TRY(rule.want_attention());
  MINFER_TRY(rule.must(attrs.n_kv > 0 && attrs.n_kv % 256 == 0,
                       fmt::format("n_kv {} must be a positive multiple of 256", attrs.n_kv)));
  MINFER_TRY(rule.want(0, "q", DType::kF32, {kAnyRows, int64_t{attrs.n_head} * attrs.head_dim}));
  MINFER_TRY(rule.want_region(1, "region_k"));
  MINFER_TRY(rule.want_lookup(2, rule.shape(0)[0]));
  return one_f32({rule.shape(0)[0], attrs.n_head, attrs.n_kv});
}

}  // namespace minfer
