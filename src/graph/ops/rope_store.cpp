// rope_store: head norms and rotation of q and k, then both KV stores. q may be absent (a last layer that only fills
// the cache).
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_rope_store(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kRopeStore, attrs, in);
  MINFER_TRY(rule.want_region(6, "region_k"));
  MINFER_TRY(rule.want_region(7, "region_v"));
  const int64_t width = int64_t{attrs.n_head_kv} * attrs.head_dim;
  MINFER_TRY(rule.want(1, "k", DType::kF32, {kAnyRows, width}));
  const int64_t n = rule.shape(1)[0];
  MINFER_TRY(rule.want(2, "v", DType::kF32, {n, width}));
  MINFER_TRY(rule.want(5, "table", DType::kF32, {n, kAnyDim}));
  const int64_t n_rot = rule.shape(5)[1];
  MINFER_TRY(
      rule.must(n_rot % 2 == 0 && n_rot <= attrs.head_dim,
                fmt::format("input 5 (table): n_rot {} must be even and at most head_dim {}", n_rot, attrs.head_dim)));
  MINFER_TRY(rule.want(8, "slots", DType::kI32, {n}));
  if (rule.has(3)) MINFER_TRY(rule.want(3, "q_norm", DType::kF32, {attrs.head_dim}));
  if (rule.has(4)) MINFER_TRY(rule.want(4, "k_norm", DType::kF32, {attrs.head_dim}));
  if (rule.has(3) || rule.has(4)) MINFER_TRY(rule.want_eps());
  if (!rule.has(0)) {
    MINFER_TRY(rule.must(!rule.has(3), "q_norm without q"));
    return Descs{};
  }
  MINFER_TRY(rule.must(attrs.n_head > 0, fmt::format("n_head {} must be positive", attrs.n_head)));
  MINFER_TRY(rule.want(0, "q", DType::kF32, {n, int64_t{attrs.n_head} * attrs.head_dim}));
  return one_f32(rule.shape(0));
}

void define_rope_store(Definition& d) {
  const Attrs& a = d.attrs();
  Attrs norm = d.plain_attrs(), rope = d.plain_attrs(), store = d.plain_attrs();
  norm.eps = a.eps;
  norm.group = a.head_dim;
  rope.head_dim = a.head_dim;
  rope.rope_style = a.rope_style;
  store.n_head_kv = a.n_head_kv;
  store.head_dim = a.head_dim;
  const ValueId table = d.in(5), slots = d.in(8);
  ValueId q = d.in(0), k = d.in(1);
  if (q != kNoValue) {
    const Shape shape = d.shape(q);
    if (d.in(3) != kNoValue) q = d.emit(Op::kRmsNormMul, norm, {q, d.in(3)}, shape, "q_norm");
    d.emit_to(d.out(), Op::kRope, rope, {q, table});
  }
  const Shape shape = d.shape(k);
  if (d.in(4) != kNoValue) k = d.emit(Op::kRmsNormMul, norm, {k, d.in(4)}, shape, "k_norm");
  k = d.emit(Op::kRope, rope, {k, table}, shape, "k_rope");
  d.emit_effect(Op::kKvStoreK, store, {k, d.in(6), slots});
  d.emit_effect(Op::kKvStoreV, store, {d.in(2), d.in(7), slots});
}

}  // namespace minfer
