// rms_norm: x f32[n, d] -> the same shape, over groups of attrs.group values.
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_rms_norm(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kRmsNorm, attrs, in);
  MINFER_TRY(rule.want(0, "x", DType::kF32, {kAnyRows, kAnyDim}));
  MINFER_TRY(rule.want_group(rule.shape(0)[1]));
  MINFER_TRY(rule.want_eps());
  return one_f32(rule.shape(0));
}

}  // namespace minfer
