// fuse_gated_act: unary(gate) -> mul by a tensor of the same shape.
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace minfer {

Status fuse_gated_act(Graph& graph) {
  Rewrite rw(graph);
  for (NodeId n = 0; n < rw.size(); ++n) {
    if (!rw.is(n, Op::kMul)) continue;
    const std::vector<ValueId>& in = rw.node(n).inputs;
    if (!(rw.value(in[0]).shape == rw.value(in[1]).shape)) continue;
    // a product does not depend on the order of its factors
    size_t gate = 0;
    NodeId act = rw.only_producer(in[0], Op::kUnary);
    if (act < 0) act = rw.only_producer(in[1], Op::kUnary), gate = 1;
    if (act < 0) continue;
    Attrs attrs;
    attrs.act = rw.node(act).attrs.act;
    attrs.layer = rw.node(n).attrs.layer;
    Node fused{Op::kGatedAct, attrs, {rw.node(act).inputs[0], in[1 - gate]}, rw.node(n).outputs};
    rw.remove(act);
    rw.put(n, std::move(fused));
  }
  rw.commit();
  return {};
}

}  // namespace minfer
