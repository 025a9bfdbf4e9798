// matmul_add: x f32[n, k], w [m, k], bias f32[m] or absent, residual f32[n, m] or absent -> f32[n, m].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_matmul_add(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kMatMulAdd, attrs, in);
  MINFER_TRY(rule.want(0, "x", DType::kF32, {kAnyRows, kAnyDim}));
  MINFER_TRY(rule.want_weight(1, "w", {kAnyDim, rule.shape(0)[1]}));
  const Shape out{rule.shape(0)[0], rule.shape(1)[0]};
  if (rule.has(2)) MINFER_TRY(rule.want(2, "bias", DType::kF32, {out[1]}));
  if (rule.has(3)) MINFER_TRY(rule.want(3, "residual", DType::kF32, {out[0], out[1]}));
  return one_f32(out);
}

void define_matmul_add(Definition& d) {
  const ValueId bias = d.in(2), residual = d.in(3);
  const Shape& shape = d.shape(d.out());
  if (bias == kNoValue && residual == kNoValue)
    return d.emit_to(d.out(), Op::kMatMul, d.plain_attrs(), {d.in(0), d.in(1)});
  ValueId y = d.emit(Op::kMatMul, d.plain_attrs(), {d.in(0), d.in(1)}, shape, "matmul");
  if (residual == kNoValue) return d.emit_to(d.out(), Op::kAdd, d.plain_attrs(), {y, bias});
  if (bias != kNoValue) y = d.emit(Op::kAdd, d.plain_attrs(), {y, bias}, d.shape(d.out()), "bias");
  d.emit_to(d.out(), Op::kAdd, d.plain_attrs(), {y, residual});
}

}  // namespace minfer
