// matmul: x f32[n, k], w [m, k] -> f32[n, m].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_matmul(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kMatMul, attrs, in);
  MINFER_TRY(rule.want(0, "x", DType::kF32, {kAnyRows, kAnyDim}));
  MINFER_TRY(rule.want_weight(1, "w", {kAnyDim, rule.shape(0)[1]}));
  return one_f32({rule.shape(0)[0], rule.shape(1)[0]});
}

}  // namespace minfer
