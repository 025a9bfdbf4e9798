// scale: x f32[n, d] -> x * attrs.scale.
#include <cmath>

#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_scale(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kScale, attrs, in);
  MINFER_TRY(rule.want_rows(0, "x"));
  MINFER_TRY(rule.must(std::isfinite(attrs.scale), fmt::format("scale {} must be finite", attrs.scale)));
  return one_f32(rule.shape(0));
}

}  // namespace minfer
