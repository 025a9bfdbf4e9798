// mul: a f32[n, d], b of the same shape, f32[d], or f32[group] with group a divisor of d.
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_mul(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kMul, attrs, in);
  MINFER_TRY(rule.want_rows(0, "a"));
  if (rule.has(1) && rule.shape(1).rank == 1) {
    MINFER_TRY(rule.want(1, "b", DType::kF32, {kAnyDim}));
    MINFER_TRY(rule.must(
        rule.shape(0).last() % rule.shape(1)[0] == 0,
        fmt::format("input 1 (b): {} values do not divide the row of {}", rule.shape(1)[0], rule.shape(0).last())));
  } else {
    MINFER_TRY(rule.want_rows(1, "b"));
    MINFER_TRY(rule.must(rule.shape(1) == rule.shape(0), fmt::format("input 1 (b): found {}, expected {} or one row",
                                                                     rule.shape(1).str(), rule.shape(0).str())));
  }
  return one_f32(rule.shape(0));
}

}  // namespace minfer
