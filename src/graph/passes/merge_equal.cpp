// merge_equal: nodes of the same op, attributes and inputs compute the same values; the first one serves all readers.
// The layer is not compared: it only labels the node (the angle table of every layer becomes one).
#include <map>

#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace minfer {

Status merge_equal(Graph& graph) {
  Rewrite rw(graph);
  std::multimap<std::pair<Op, std::vector<ValueId>>, NodeId> seen;
  for (NodeId n = 0; n < rw.size(); ++n) {
    const Node& node = rw.node(n);
    const OpInfo& info = op_info(node.op);
    if (info.side_effect || info.region_k >= 0 || info.region_v >= 0) continue;  // regions change during a step
    const auto key = std::make_pair(node.op, node.inputs);
    const auto [begin, end] = seen.equal_range(key);
    NodeId same = -1;
    for (auto it = begin; it != end && same < 0; ++it) {
      Attrs a = rw.node(it->second).attrs;
      a.layer = node.attrs.layer;
      if (a == node.attrs) same = it->second;
    }
    if (same < 0) {
      seen.emplace(key, n);
      continue;
    }
    const std::vector<ValueId> outputs = node.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) rw.redirect(outputs[i], rw.node(same).outputs[i]);
    rw.remove(n);
  }
  rw.commit();
  return {};
}

}  // namespace minfer
