// fuse_norm_matmul: rms_norm_mul over whole rows whose only reader is a matmul_group, or a matmul, becomes one node
// with it.
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace minfer {

Status fuse_norm_matmul(Graph& graph) {
  Rewrite rw(graph);
  for (NodeId n = 0; n < rw.size(); ++n) {
    if (!rw.is(n, Op::kRmsNormMul)) continue;
    const Node& norm = rw.node(n);
    const ValueId y = norm.outputs[0];
    const int64_t k = rw.value(y).shape.last();
    if (norm.attrs.group != 0 && norm.attrs.group != k) continue;
    if (rw.value(y).shape.rank != 2 || rw.value(norm.inputs[1]).shape.last() != k) continue;
    const NodeId user = rw.only_user(y);
    if (!rw.is(user, Op::kMatMulGroup) && !rw.is(user, Op::kMatMul)) continue;
    const Node& matmul = rw.node(user);
    if (matmul.inputs[0] != y) continue;

    Node fused{Op::kNormMatMulGroup, matmul.attrs, {norm.inputs[0], norm.inputs[1]}, matmul.outputs};
    fused.attrs.eps = norm.attrs.eps;
    fused.inputs.insert(fused.inputs.end(), matmul.inputs.begin() + 1, matmul.inputs.end());
    if (matmul.op == Op::kMatMul) {
      fused.attrs.n_group = 1;
      fused.inputs.push_back(kNoValue);
    }
    rw.remove(n);
    rw.put(user, std::move(fused));
  }
  rw.commit();
  return {};
}

}  // namespace minfer
