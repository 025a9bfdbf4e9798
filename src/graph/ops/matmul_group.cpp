// matmul_group: x f32[n, k], w_0..w_{g-1} [m_i, k], b_0..b_{g-1} f32[m_i] or absent -> y_i f32[n, m_i].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_group(Rule& rule, size_t first, const char* leading) {
  const int32_t n = rule.attrs().n_group;
  MINFER_TRY(rule.must(n >= 1 && n <= kMaxOutputs, fmt::format("n_group {} must be 1..{}", n, kMaxOutputs)));
  const auto g = static_cast<size_t>(n);
  MINFER_TRY(rule.must(rule.n_inputs() == first + 2 * g, fmt::format("{} inputs, expected {} ({}, weights, biases)",
                                                                     rule.n_inputs(), first + 2 * g, leading)));
  MINFER_TRY(rule.want(0, "x", DType::kF32, {kAnyRows, kAnyDim}));
  const Shape x = rule.shape(0);
  Descs out;
  for (size_t i = 0; i < g; ++i) {
    MINFER_TRY(rule.want_weight(first + i, "w", {kAnyDim, x[1]}));
    const int64_t m = rule.shape(first + i)[0];
    if (rule.has(first + g + i)) MINFER_TRY(rule.want(first + g + i, "bias", DType::kF32, {m}));
    out.push_back(ValueDesc{DType::kF32, {x[0], m}, false});
  }
  return out;
}

Result<Descs> infer_matmul_group(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kMatMulGroup, attrs, in);
  return infer_group(rule, 1, "x");
}

void define_matmul_group(Definition& d) {
  for (size_t i = 0, g = d.n_out(); i < g; ++i) {
    const ValueId bias = d.in(1 + g + i);
    if (bias == kNoValue) {
      d.emit_to(d.out(i), Op::kMatMul, d.plain_attrs(), {d.in(0), d.in(1 + i)});
    } else {
      d.emit_to(d.out(i), Op::kMatMulAdd, d.plain_attrs(), {d.in(0), d.in(1 + i), bias, kNoValue});
    }
  }
}

}  // namespace minfer
