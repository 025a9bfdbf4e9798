// fuse_matmul_group: two to four matmuls of one layer that read the same x (with a bias or without, never with a
// residual) become one node where the first stood.
#include <algorithm>

#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace minfer {
namespace {

constexpr size_t kMaxGroup = 4;

// A matmul that may join a group standing at node `first`.
bool joins(const Rewrite& rw, NodeId n, NodeId first) {
  if (rw.is(n, Op::kMatMul)) return true;
  if (!rw.is(n, Op::kMatMulAdd)) return false;
  const std::vector<ValueId>& in = rw.node(n).inputs;
  return in[3] == kNoValue && rw.producer(in[2]) < first;  // the bias is there already
}

}  // namespace

Status fuse_matmul_group(Graph& graph) {
  Rewrite rw(graph);
  for (NodeId first = 0; first < rw.size(); ++first) {
    if (!joins(rw, first, first)) continue;
    const ValueId x = rw.node(first).inputs[0];
    std::vector<NodeId> members;
    for (NodeId n : rw.users(x)) {
      if (n < first || !joins(rw, n, first) || rw.node(n).inputs[0] != x) continue;
      if (rw.node(n).attrs.layer == rw.node(first).attrs.layer) members.push_back(n);
    }
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (members.size() < 2) continue;
    members.resize(std::min(members.size(), kMaxGroup));

    Node fused{Op::kMatMulGroup, {}, {x}, {}};
    fused.attrs.n_group = static_cast<int32_t>(members.size());
    fused.attrs.layer = rw.node(first).attrs.layer;
    for (NodeId n : members) {
      fused.inputs.push_back(rw.node(n).inputs[1]);
      fused.outputs.push_back(rw.node(n).outputs[0]);
    }
    for (NodeId n : members) fused.inputs.push_back(rw.node(n).op == Op::kMatMulAdd ? rw.node(n).inputs[2] : kNoValue);
    for (NodeId n : members) rw.remove(n);
    rw.put(first, std::move(fused));
  }
  rw.commit();
  return {};
}

}  // namespace minfer
