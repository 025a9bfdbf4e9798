// matmul_group: x f32[n, k], w_0..w_{g-1} [m_i, k], b_0..b_{g-1} f32[m_i] or absent -> y_i f32[n, m_i].
#include "graph/ops/rules.h"

namespace minfer {

namespace {

constexpr int32_t kMaxGroup = 4;  // 1 + 2 * 4 inputs and 4 outputs fit a node

}  // namespace

Result<Descs> infer_matmul_group(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kMatMulGroup, attrs, in);
  MINFER_TRY(rule.must(attrs.n_group >= 1 && attrs.n_group <= kMaxGroup,
                       fmt::format("n_group {} must be 1..{}", attrs.n_group, kMaxGroup)));
  const auto g = static_cast<size_t>(attrs.n_group);
  MINFER_TRY(rule.must(in.size() == 1 + 2 * g,
                       fmt::format("{} inputs, expected {} (x, weights, biases)", in.size(), 1 + 2 * g)));
  MINFER_TRY(rule.want(0, "x", DType::kF32, {kAnyRows, kAnyDim}));
  Descs out;
  for (size_t i = 0; i < g; ++i) {
    MINFER_TRY(rule.want_weight(1 + i, "w", {kAnyDim, rule.shape(0)[1]}));
    const int64_t m = rule.shape(1 + i)[0];
    if (rule.has(1 + g + i)) MINFER_TRY(rule.want(1 + g + i, "bias", DType::kF32, {m}));
    out.push_back(ValueDesc{DType::kF32, {rule.shape(0)[0], m}, false});
  }
  return out;
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
