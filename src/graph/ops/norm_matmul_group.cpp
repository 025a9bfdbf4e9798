// norm_matmul_group: x f32[n, k], gains f32[k], w_0..w_{g-1} [m_i, k], b_0..b_{g-1} f32[m_i] or absent -> y_i f32[n,
// m_i]. A backend that has it normalises a row where it is used: no worker waits for another's part of a short row.
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_norm_matmul_group(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kNormMatMulGroup, attrs, in);
  MINFER_TRY(rule.must(attrs.n_group >= 1 && attrs.n_group <= kMaxOutputs,
                       fmt::format("n_group {} must be 1..{}", attrs.n_group, kMaxOutputs)));
  const auto g = static_cast<size_t>(attrs.n_group);
  MINFER_TRY(rule.must(in.size() == 2 + 2 * g,
                       fmt::format("{} inputs, expected {} (x, gains, weights, biases)", in.size(), 2 + 2 * g)));
  MINFER_TRY(rule.want(0, "x", DType::kF32, {kAnyRows, kAnyDim}));
  MINFER_TRY(rule.want_eps());
  MINFER_TRY(rule.want(1, "gains", DType::kF32, {rule.shape(0)[1]}));
  Descs out;
  for (size_t i = 0; i < g; ++i) {
    MINFER_TRY(rule.want_weight(2 + i, "w", {kAnyDim, rule.shape(0)[1]}));
    const int64_t m = rule.shape(2 + i)[0];
    if (rule.has(2 + g + i)) MINFER_TRY(rule.want(2 + g + i, "bias", DType::kF32, {m}));
    out.push_back(ValueDesc{DType::kF32, {rule.shape(0)[0], m}, false});
  }
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
