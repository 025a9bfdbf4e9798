// get_rows: x f32[n, d], rows i32[m] -> f32[m, d].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_get_rows(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kGetRows, attrs, in);
  MINFER_TRY(rule.want(0, "x", DType::kF32, {kAnyRows, kAnyDim}));
  MINFER_TRY(rule.want(1, "rows", DType::kI32, {kAnyRows}));
  return one_f32({rule.shape(1)[0], rule.shape(0)[1]});
}

}  // namespace minfer
