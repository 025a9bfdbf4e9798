// Changing graphs in place.
#include "graph/passes/rewrite.h"

#include <algorithm>

namespace minfer {

Rewrite::Rewrite(Graph& graph)
    : graph_(graph),
      live_(graph.nodes.size(), true),
      users_(graph.values.size()),
      is_output_(graph.values.size(), false) {
  for (NodeId n = 0; n < size(); ++n) {
    for (ValueId v : node(n).inputs) {
      if (v != kNoValue) users_[static_cast<size_t>(v)].push_back(n);
    }
  }
  for (ValueId v : graph.outputs) is_output_[static_cast<size_t>(v)] = true;
}

NodeId Rewrite::only_user(ValueId v) const {
  if (v == kNoValue || is_output(v) || users(v).size() != 1) return -1;
  return users(v)[0];
}

NodeId Rewrite::only_producer(ValueId v, Op op) const {
  const NodeId n = producer(v);
  return is(n, op) && only_user(v) >= 0 ? n : -1;
}

void Rewrite::remove(NodeId n) {
  if (!live(n)) return;
  live_[static_cast<size_t>(n)] = false;
  for (ValueId v : node(n).inputs) {
    if (v == kNoValue) continue;
    auto& users = users_[static_cast<size_t>(v)];
    users.erase(std::find(users.begin(), users.end(), n));
  }
}

void Rewrite::put(NodeId n, Node node) {
  remove(n);
  live_[static_cast<size_t>(n)] = true;
  for (ValueId v : node.inputs) {
    if (v != kNoValue) users_[static_cast<size_t>(v)].push_back(n);
  }
  for (ValueId v : node.outputs) graph_.values[static_cast<size_t>(v)].producer = n;
  graph_.nodes[static_cast<size_t>(n)] = std::move(node);
}

void Rewrite::redirect(ValueId from, ValueId to) {
  for (NodeId n : users_[static_cast<size_t>(from)]) {
    auto& inputs = graph_.nodes[static_cast<size_t>(n)].inputs;
    std::replace(inputs.begin(), inputs.end(), from, to);
    users_[static_cast<size_t>(to)].push_back(n);
  }
  users_[static_cast<size_t>(from)].clear();
  std::replace(graph_.outputs.begin(), graph_.outputs.end(), from, to);
  if (is_output_[static_cast<size_t>(from)]) is_output_[static_cast<size_t>(to)] = true;
  is_output_[static_cast<size_t>(from)] = false;
}

void Rewrite::commit() {
  std::vector<Node> nodes;
  nodes.reserve(graph_.nodes.size());
  std::vector<bool> made(graph_.values.size(), false);
  for (NodeId n = 0; n < size(); ++n) {
    if (!live(n)) continue;
    for (ValueId v : node(n).outputs) {
      graph_.values[static_cast<size_t>(v)].producer = static_cast<NodeId>(nodes.size());
      made[static_cast<size_t>(v)] = true;
    }
    nodes.push_back(std::move(graph_.nodes[static_cast<size_t>(n)]));
  }
  for (size_t v = 0; v < made.size(); ++v) {
    if (!made[v]) graph_.values[v].producer = -1;
  }
  graph_.nodes = std::move(nodes);
}

}  // namespace minfer
