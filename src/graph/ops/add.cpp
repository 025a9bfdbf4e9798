// add: a f32[n, d], b of the same shape or f32[d].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_add(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kAdd, attrs, in);
  MINFER_TRY(rule.want_rows(0, "a"));
  if (rule.has(1) && rule.shape(1).rank == 1) {
    MINFER_TRY(rule.want(1, "b", DType::kF32, {rule.shape(0).last()}));
  } else {
    MINFER_TRY(rule.want_rows(1, "b"));
    MINFER_TRY(rule.must(rule.shape(1) == rule.shape(0),
                         fmt::format("input 1 (b): found {}, expected {} or [{}]", rule.shape(1).str(),
                                     rule.shape(0).str(), rule.shape(0).last())));
  }
  return one_f32(rule.shape(0));
}

}  // namespace minfer
