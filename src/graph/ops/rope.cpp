// rope: x f32[n, heads * head_dim], table f32[n, n_rot] -> the shape of x.
#include "graph/ops/rules.h"

namespace minfer {

Result<Descs> infer_rope(const Attrs& attrs, const Descs& in) {
  Rule rule(Op::kRope, attrs, in);
  MINFER_TRY(rule.want(0, "x", DType::kF32, {kAnyRows, kAnyDim}));
  MINFER_TRY(rule.must(
      attrs.head_dim > 0 && rule.shape(0)[1] % attrs.head_dim == 0,
      fmt::format("head_dim {} must be positive and divide the row of {}", attrs.head_dim, rule.shape(0)[1])));
  MINFER_TRY(rule.want(1, "table", DType::kF32, {rule.shape(0)[0], kAnyDim}));
  const int64_t n_rot = rule.shape(1)[1];
  MINFER_TRY(
      rule.must(n_rot % 2 == 0 && n_rot <= attrs.head_dim,
                fmt::format("input 1 (table): n_rot {} must be even and at most head_dim {}", n_rot, attrs.head_dim)));
  return one_f32(rule.shape(0));
}

}  // namespace minfer
