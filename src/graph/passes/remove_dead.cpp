// remove_dead: nodes without side effects that nobody reads go, then values that nobody names (ids change).
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace minfer {

Status remove_dead(Graph& graph) {
  Rewrite rw(graph);
  for (NodeId n = rw.size() - 1; n >= 0; --n) {  // readers come after what they read
    if (op_info(rw.node(n).op).side_effect) continue;
    bool wanted = false;
    for (ValueId v : rw.node(n).outputs) wanted = wanted || rw.is_output(v) || !rw.users(v).empty();
    if (!wanted) rw.remove(n);
  }
  rw.commit();

  std::vector<bool> named(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    for (ValueId v : node.inputs) {
      if (v != kNoValue) named[static_cast<size_t>(v)] = true;
    }
    for (ValueId v : node.outputs) named[static_cast<size_t>(v)] = true;
  }
  for (ValueId v : graph.outputs) named[static_cast<size_t>(v)] = true;

  std::vector<ValueId> moved(graph.values.size(), kNoValue);
  std::vector<Value> kept;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!named[v]) continue;
    moved[v] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(graph.values[v]));
  }
  graph.values = std::move(kept);
  const auto rename = [&](std::vector<ValueId>& ids) {
    for (ValueId& v : ids) {
      if (v != kNoValue) v = moved[static_cast<size_t>(v)];
    }
  };
  for (Node& node : graph.nodes) {
    rename(node.inputs);
    rename(node.outputs);
  }
  rename(graph.outputs);
  return {};
}

}  // namespace minfer
