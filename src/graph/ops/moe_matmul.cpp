// moe_matmul: x f32[n, k] or f32[n, top_k, k], w [n_expert, m, k], ids i32[n, top_k] -> f32[n, top_k, m].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_moe_matmul(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kMoeMatMul, attrs, in);
  MINFER_TRY(rule.want(2, "ids", DType::kI32, {kAnyRows, kAnyDim}));
  const int64_t n = rule.shape(2)[0], top_k = rule.shape(2)[1];
  MINFER_TRY(
      rule.must(attrs.top_k == top_k, fmt::format("top_k {}, but input 2 (ids) has {} per token", attrs.top_k, top_k)));
  if (rule.has(0) && rule.shape(0).rank == 3) {
    MINFER_TRY(rule.want(0, "x", DType::kF32, {n, top_k, kAnyDim}));
  } else {
    MINFER_TRY(rule.want(0, "x", DType::kF32, {n, kAnyDim}));
  }
  MINFER_TRY(rule.want_weight(1, "w", {kAnyDim, kAnyDim, rule.shape(0).last()}));
  return one_f32({n, top_k, rule.shape(1)[1]});
}

}  // namespace minfer
