// Rewrite: a graph while a pass changes it. Nodes keep their indices until commit(), so that patterns can be followed
// by producer and user; removed nodes leave holes.
// Threads: one.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace minfer {

class Rewrite {
 public:
  explicit Rewrite(Graph& graph);

  NodeId size() const { return static_cast<NodeId>(graph_.nodes.size()); }
  const Graph& graph() const { return graph_; }
  const Node& node(NodeId n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  const Value& value(ValueId v) const { return graph_.value(v); }
  bool live(NodeId n) const { return live_[static_cast<size_t>(n)]; }
  bool is(NodeId n, Op op) const { return n >= 0 && live(n) && node(n).op == op; }

  // The node that makes v, -1 for external values and kNoValue.
  NodeId producer(ValueId v) const { return v == kNoValue ? -1 : value(v).producer; }
  // The nodes that read v, once per input slot, in no particular order.
  const std::vector<NodeId>& users(ValueId v) const { return users_[static_cast<size_t>(v)]; }
  bool is_output(ValueId v) const { return is_output_[static_cast<size_t>(v)]; }
  // The only reader of v, -1 when there are several, none, or v is an output of the graph.
  NodeId only_user(ValueId v) const;
  // The producer of v if it has this op and v is read once only, else -1.
  NodeId only_producer(ValueId v, Op op) const;

  void remove(NodeId n);
  // Puts another node in the place of a live or removed one; its outputs get it as producer.
  void put(NodeId n, Node node);
  // Lets every reader of `from` (and the graph's outputs) take `to` instead.
  void redirect(ValueId from, ValueId to);

  // Closes the holes. Call once, last.
  void commit();

 private:
  Graph& graph_;
  std::vector<bool> live_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_output_;
};

}  // namespace minfer
