// Definition: how a composite is written in other ops, finally in primitives.
// Names:  values made on the way are called "<output>.<part>".
// Errors: none here; verify() checks what comes out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace minfer {

class Definition {
 public:
  // The composite `node` of `graph`; new values are appended to the graph, nodes are collected here.
  Definition(Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  const Attrs& attrs() const { return node_.attrs; }
  // Input i, kNoValue when it is absent.
  ValueId in(size_t i) const { return i < node_.inputs.size() ? node_.inputs[i] : kNoValue; }
  ValueId out(size_t i = 0) const { return node_.outputs[i]; }
  size_t n_out() const { return node_.outputs.size(); }
  const Shape& shape(ValueId id) const { return graph_.value(id).shape; }

  // Default attributes with the composite's layer.
  Attrs plain_attrs() const;

  // Appends a node that makes the composite's own output `out`.
  void emit_to(ValueId out, Op op, const Attrs& attrs, std::vector<ValueId> inputs);
  // Appends a node with one new output of this shape, f32.
  ValueId emit(Op op, const Attrs& attrs, std::vector<ValueId> inputs, const Shape& shape, const char* part);
  // Appends a node that makes all of the composite's own outputs.
  void emit_all(Op op, const Attrs& attrs, std::vector<ValueId> inputs);
  // Appends a node without outputs.
  void emit_effect(Op op, const Attrs& attrs, std::vector<ValueId> inputs);

  std::vector<Node> take() && { return std::move(nodes_); }

 private:
  Graph& graph_;
  const Node& node_;
  std::vector<Node> nodes_;
};

// Writes the node's definition; null for primitives.
using DefineFn = void (*)(Definition& d);
DefineFn find_definition(Op op);

}  // namespace minfer
