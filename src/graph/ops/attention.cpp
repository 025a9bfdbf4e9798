// attention: q f32[n, n_head * head_dim], region K, region V, positions, seqs, block_table -> the shape of q.
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_attention(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kAttention, attrs, in);
  MINFER_TRY(rule.want_attention());
  MINFER_TRY(rule.must(attrs.n_kv > 0 && attrs.n_kv % 256 == 0,
                       fmt::format("n_kv {} must be a positive multiple of 256", attrs.n_kv)));
  MINFER_TRY(rule.want(0, "q", DType::kF32, {kAnyRows, int64_t{attrs.n_head} * attrs.head_dim}));
  MINFER_TRY(rule.want_region(1, "region_k"));
  MINFER_TRY(rule.want_region(2, "region_v"));
  MINFER_TRY(rule.want_lookup(3, rule.shape(0)[0]));
  return one_f32(rule.shape(0));
}

void define_attention(Definition& d) {
  const Attrs& a = d.attrs();
  const int64_t n = d.shape(d.in(0))[0];
  Attrs softmax = d.plain_attrs(), mix = d.plain_attrs();
  softmax.window = a.window;
  mix.n_head = a.n_head;
  mix.n_head_kv = a.n_head_kv;
  mix.head_dim = a.head_dim;
  mix.window = a.window;
  mix.page_size = a.page_size;
  const ValueId positions = d.in(3), seqs = d.in(4), block_table = d.in(5);
  const ValueId scores =
      d.emit(Op::kAttnScores, a, {d.in(0), d.in(1), positions, seqs, block_table}, {n, a.n_head, a.n_kv}, "scores");
  const ValueId weights =
      d.emit(Op::kAttnSoftmax, softmax, {scores, positions}, {n, a.n_head, a.n_kv + 2 * (a.n_kv / 256)}, "weights");
  d.emit_to(d.out(), Op::kAttnMix, mix, {weights, d.in(2), positions, seqs, block_table});
}

}  // namespace minfer
