// embed: ids i32[n], table [n_vocab, d] -> f32[n, d].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_embed(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kEmbed, attrs, in);
  MINFER_TRY(rule.want(0, "ids", DType::kI32, {kAnyRows}));
  MINFER_TRY(rule.want_weight(1, "table", {kAnyDim, kAnyDim}));
  return one_f32({rule.shape(0)[0], rule.shape(1)[1]});
}

}  // namespace minfer
