// norm_matmul_group: x f32[n, k], gains f32[k], w_0..w_{g-1} [m_i, k], b_0..b_{g-1} f32[m_i] or absent -> y_i f32[n,
// m_i]. A backend that has it normalises a row where it is used: no worker waits for another's part of a short row.
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_norm_matmul_group(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kNormMatMulGroup, attrs, in);
  const Descs out = MINFER_TRY(infer_group(rule, 2, "x, gains"));
  MINFER_TRY(rule.want_eps());
  MINFER_TRY(rule.want(1, "gains", DType::kF32, {rule.shape(0)[1]}));
  return out;
}

void define_norm_matmul_group(Definition& d) {
  Attrs norm = d.plain_attrs(), group = d.plain_attrs();
  norm.eps = d.attrs().eps;
  const ValueId x = d.emit(Op::kRmsNormMul, norm, {d.in(0), d.in(1)}, d.shape(d.in(0)), "norm");
  const size_t g = d.n_out();
  if (g == 1 && d.in(3) == kNoValue) {
    d.emit_all(Op::kMatMul, group, {x, d.in(2)});
    return;
  }
  group.n_group = d.attrs().n_group;
  std::vector<ValueId> inputs = {x};
  for (size_t i = 0; i < 2 * g; ++i) inputs.push_back(d.in(2 + i));
  d.emit_all(Op::kMatMulGroup, group, std::move(inputs));
}

}  // namespace minfer
