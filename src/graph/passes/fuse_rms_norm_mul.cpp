// fuse_rms_norm_mul: rms_norm -> mul by a row of weights of the group's or the row's length.
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace minfer {

Status fuse_rms_norm_mul(Graph& graph) {
  Rewrite rw(graph);
  for (NodeId n = 0; n < rw.size(); ++n) {
    if (!rw.is(n, Op::kMul)) continue;
    const ValueId y = rw.node(n).inputs[0], w = rw.node(n).inputs[1];
    const NodeId norm = rw.only_producer(y, Op::kRmsNorm);
    if (norm < 0 || rw.value(w).shape.rank != 1) continue;
    const Attrs& from = rw.node(norm).attrs;
    const int64_t length = rw.value(w).shape[0];
    if (length != rw.value(y).shape.last() && length != from.group) continue;
    Attrs attrs;
    attrs.eps = from.eps;
    attrs.group = from.group;
    attrs.layer = rw.node(n).attrs.layer;
    Node fused{Op::kRmsNormMul, attrs, {rw.node(norm).inputs[0], w}, rw.node(n).outputs};
    rw.remove(norm);
    rw.put(n, std::move(fused));
  }
  rw.commit();
  return {};
}

}  // namespace minfer
