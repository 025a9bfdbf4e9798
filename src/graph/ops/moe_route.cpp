// moe_route: logits f32[n, n_expert] -> ids i32[n, top_k], weights f32[n, top_k].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_moe_route(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kMoeRoute, attrs, in);
  MINFER_TRY(rule.want(0, "logits", DType::kF32, {kAnyRows, kAnyDim}));
  MINFER_TRY(rule.must(attrs.top_k >= 1 && attrs.top_k <= rule.shape(0)[1],
                       fmt::format("top_k {} must be 1..{}, the number of experts", attrs.top_k, rule.shape(0)[1])));
  const Shape out{rule.shape(0)[0], attrs.top_k};
  return Descs{ValueDesc{DType::kI32, out, false}, ValueDesc{DType::kF32, out, false}};
}

}  // namespace minfer
