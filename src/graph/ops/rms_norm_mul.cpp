// rms_norm_mul: x f32[n, d], w f32[d] or f32[group] -> the shape of x.
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_rms_norm_mul(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kRmsNormMul, attrs, in);
  MINFER_TRY(rule.want(0, "x", DType::kF32, {kAnyRows, kAnyDim}));
  MINFER_TRY(rule.want_group(rule.shape(0)[1]));
  MINFER_TRY(rule.want_eps());
  const int64_t d = rule.shape(0)[1];
  const bool per_group = rule.has(1) && attrs.group != 0 && rule.shape(1).last() == attrs.group;
  MINFER_TRY(rule.want(1, "w", DType::kF32, {per_group ? attrs.group : d}));
  return one_f32(rule.shape(0));
}

void define_rms_norm_mul(Definition& d) {
  Attrs norm = d.plain_attrs();
  norm.eps = d.attrs().eps;
  norm.group = d.attrs().group;
  const ValueId y = d.emit(Op::kRmsNorm, norm, {d.in(0)}, d.shape(d.in(0)), "rms");
  d.emit_to(d.out(), Op::kMul, d.plain_attrs(), {y, d.in(1)});
}

}  // namespace minfer
