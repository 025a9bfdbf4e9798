// Graphs as Graphviz text: a box per node, an ellipse per step input and region; weights are named inside the boxes.
#include "graph/attrs_text.h"
#include "graph/graph.h"

namespace minfer {
namespace {

// Text for use inside a quoted label.
std::string label(const std::string& text) {
  const std::string q = quoted(text);
  return q.substr(1, q.size() - 2);
}

std::string type_text(const Value& v) { return std::string(dtype_info(v.dtype).name) + " " + v.shape.str(); }

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string s = "digraph minfer {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n";
  std::vector<bool> drawn(graph.values.size(), false);
  const auto source = [&](ValueId id) {  // the DOT id a value comes from
    const Value& v = graph.value(id);
    if (v.kind == ValueKind::kActivation) return fmt::format("n{}", v.producer);
    if (!drawn[static_cast<size_t>(id)]) {
      drawn[static_cast<size_t>(id)] = true;
      s += fmt::format("  v{} [shape=ellipse, label=\"{}\\n{}\"];\n", id, label(v.name), type_text(v));
    }
    return fmt::format("v{}", id);
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    std::string text = op_info(node.op).name;
    for (const auto& [name, value] : attrs_text(node)) text += "\\n" + name + " " + label(value);
    for (ValueId id : node.inputs) {
      if (id != kNoValue && graph.value(id).kind == ValueKind::kWeight) {
        text += "\\n" + label(graph.value(id).name) + " " + type_text(graph.value(id));
      }
    }
    for (ValueId id : node.outputs) text += "\\n-> " + label(graph.value(id).name) + " " + type_text(graph.value(id));
    s += fmt::format("  n{} [label=\"{}\"];\n", n, text);
    for (ValueId id : node.inputs) {
      if (id == kNoValue || graph.value(id).kind == ValueKind::kWeight) continue;
      const std::string from = source(id);
      const bool stores = graph.value(id).kind == ValueKind::kKvRegion && op_info(node.op).side_effect;
      s += stores ? fmt::format("  n{} -> {};\n", n, from) : fmt::format("  {} -> n{};\n", from, n);
    }
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    s += fmt::format("  out{} [shape=ellipse, label=\"output {}\"];\n", i, i);
    const std::string from = source(graph.outputs[i]);
    s += fmt::format("  {} -> out{};\n", from, i);
  }
  return s + "}\n";
}

}  // namespace minfer
