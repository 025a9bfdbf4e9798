// Graphs as JSON: {"values": [...], "nodes": [...], "outputs": [...]}; values are referred to by index, an absent
// input is null.
#include "graph/attrs_text.h"
#include "graph/graph.h"

namespace minfer {
namespace {

const char* kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::kInput: return "input";
    case ValueKind::kWeight: return "weight";
    case ValueKind::kKvRegion: return "kv_region";
    case ValueKind::kActivation: return "activation";
  }
  return "?";
}

std::string ids_text(const std::vector<ValueId>& ids) {
  std::string s = "[";
  for (ValueId id : ids) {
    if (s.size() > 1) s += ", ";
    s += id == kNoValue ? "null" : std::to_string(id);
  }
  return s + "]";
}

}  // namespace

std::string to_json(const Graph& graph) {
  std::string s = "{\n\"values\": [";
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& v = graph.values[i];
    s += fmt::format("{}\n  {{\"name\": {}, \"kind\": \"{}\", \"dtype\": \"{}\", \"shape\": {}", i == 0 ? "" : ",",
                     quoted(v.name), kind_name(v.kind), dtype_info(v.dtype).name, v.shape.str());
    if (v.kind == ValueKind::kActivation) s += fmt::format(", \"producer\": {}", v.producer);
    if (v.kind == ValueKind::kWeight || v.kind == ValueKind::kKvRegion)
      s += fmt::format(", \"external\": {}", v.external);
    s += "}";
  }
  s += "\n],\n\"nodes\": [";
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    s += fmt::format("{}\n  {{\"op\": \"{}\", \"inputs\": {}, \"outputs\": {}, \"attrs\": {{", n == 0 ? "" : ",",
                     op_info(node.op).name, ids_text(node.inputs), ids_text(node.outputs));
    bool first = true;
    for (const auto& [name, value] : attrs_text(node)) {
      s += fmt::format("{}\"{}\": {}", first ? "" : ", ", name, value);
      first = false;
    }
    s += "}}";
  }
  return s + fmt::format("\n],\n\"outputs\": {}\n}}\n", ids_text(graph.outputs));
}

}  // namespace minfer
