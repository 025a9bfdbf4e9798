// fuse_matmul_add: matmul -> add(bias of m values) -> add(residual of the result's shape); either add may be missing.
// The fused node stands where the last add stood, so that the residual is there.
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace minfer {
namespace {

// The other operand of an add that reads y, in either order (a sum does not depend on it). y is read once.
ValueId other_operand(const Node& add, ValueId y) { return add.inputs[0] == y ? add.inputs[1] : add.inputs[0]; }

}  // namespace

Status fuse_matmul_add(Graph& graph) {
  Rewrite rw(graph);
  for (NodeId n = 0; n < rw.size(); ++n) {
    if (!rw.is(n, Op::kMatMul)) continue;
    ValueId y = rw.node(n).outputs[0], bias = kNoValue, residual = kNoValue;
    NodeId bias_add = -1, last = -1;
    NodeId add = rw.only_user(y);
    if (rw.is(add, Op::kAdd) && rw.value(other_operand(rw.node(add), y)).shape.rank == 1) {
      bias = other_operand(rw.node(add), y);
      bias_add = last = add;
      y = rw.node(add).outputs[0];
      add = rw.only_user(y);
    }
    if (rw.is(add, Op::kAdd) && rw.value(other_operand(rw.node(add), y)).shape == rw.value(y).shape) {
      residual = other_operand(rw.node(add), y);
      last = add;
    }
    if (last < 0) continue;
    Attrs attrs;
    attrs.layer = rw.node(n).attrs.layer;
    Node fused{
        Op::kMatMulAdd, attrs, {rw.node(n).inputs[0], rw.node(n).inputs[1], bias, residual}, rw.node(last).outputs};
    rw.remove(n);
    if (bias_add >= 0) rw.remove(bias_add);
    rw.put(last, std::move(fused));
  }
  rw.commit();
  return {};
}

}  // namespace minfer
