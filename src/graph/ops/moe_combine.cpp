// moe_combine: y f32[n, top_k, d], weights f32[n, top_k] -> f32[n, d].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_moe_combine(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kMoeCombine, attrs, in);
  MINFER_TRY(rule.want(0, "y", DType::kF32, {kAnyRows, kAnyDim, kAnyDim}));
  const Shape& y = rule.shape(0);
  MINFER_TRY(
      rule.must(attrs.top_k == y[1], fmt::format("top_k {}, but input 0 (y) has {} per token", attrs.top_k, y[1])));
  MINFER_TRY(rule.want(1, "weights", DType::kF32, {y[0], y[1]}));
  return one_f32({y[0], y[2]});
}

}  // namespace minfer
