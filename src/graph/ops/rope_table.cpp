// rope_table: positions i32[n], inv_freq f64[n_rot / 2] -> f32[n, n_rot].
#include <cmath>

#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_rope_table(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kRopeTable, attrs, in);
  MINFER_TRY(rule.want(0, "positions", DType::kI32, {kAnyRows}));
  MINFER_TRY(rule.want(1, "inv_freq", DType::kF64, {kAnyDim}));
  MINFER_TRY(rule.must(std::isfinite(attrs.scale), fmt::format("scale {} must be finite", attrs.scale)));
  return one_f32({rule.shape(0)[0], 2 * rule.shape(1)[0]});
}

}  // namespace minfer
