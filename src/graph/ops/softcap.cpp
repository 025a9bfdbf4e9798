// softcap: x f32[n, d] -> c * tanh(x / c), c = attrs.softcap > 0.
#include <cmath>

#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_softcap(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kSoftcap, attrs, in);
  MINFER_TRY(rule.want_rows(0, "x"));
  MINFER_TRY(rule.must(std::isfinite(attrs.softcap) && attrs.softcap > 0,
                       fmt::format("softcap {} must be finite and positive", attrs.softcap)));
  return one_f32(rule.shape(0));
}

}  // namespace minfer
