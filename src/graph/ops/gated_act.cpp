// gated_act: gate f32[n, d], up of the same shape -> attrs.act(gate) * up.
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_gated_act(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kGatedAct, attrs, in);
  MINFER_TRY(rule.want_rows(0, "gate"));
  MINFER_TRY(rule.want_rows(1, "up"));
  MINFER_TRY(rule.must(rule.shape(0) == rule.shape(1),
                       fmt::format("input 1 (up): found {}, expected {}", rule.shape(1).str(), rule.shape(0).str())));
  return one_f32(rule.shape(0));
}

void define_gated_act(Definition& d) {
  Attrs act = d.plain_attrs();
  act.act = d.attrs().act;
  const ValueId y = d.emit(Op::kUnary, act, {d.in(0)}, d.shape(d.in(0)), "act");
  d.emit_to(d.out(), Op::kMul, d.plain_attrs(), {y, d.in(1)});
}

}  // namespace minfer
