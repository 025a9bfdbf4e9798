// unary: x f32[n, d] -> attrs.act(x).
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_unary(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kUnary, attrs, in);
  MINFER_TRY(rule.want_rows(0, "x"));
  return one_f32(rule.shape(0));
}

}  // namespace minfer
