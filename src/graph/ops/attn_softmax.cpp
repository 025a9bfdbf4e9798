// attn_softmax: scores f32[n, n_head, n_kv], positions i32[n] -> f32[n, n_head, n_kv + 2 * n_kv / 256].
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_attn_softmax(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kAttnSoftmax, attrs, in);
  MINFER_TRY(rule.want(0, "scores", DType::kF32, {kAnyRows, kAnyDim, kAnyDim}));
  const Shape& s = rule.shape(0);
  MINFER_TRY(rule.must(s[2] % 256 == 0, fmt::format("input 0 (scores): n_kv {} must be a multiple of 256", s[2])));
  MINFER_TRY(rule.must(attrs.window >= 0, fmt::format("window {} must not be negative", attrs.window)));
  MINFER_TRY(rule.want(1, "positions", DType::kI32, {s[0]}));
  return one_f32({s[0], s[1], s[2] + 2 * (s[2] / 256)});
}

}  // namespace minfer
