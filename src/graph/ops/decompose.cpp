// Building blocks of definitions, and the replacement of nodes by them.
#include "graph/ops/decompose.h"

#include <functional>

#include "graph/ops/rules.h"
#include "graph/passes/pass.h"

namespace minfer {

Attrs Definition::plain_attrs() const {
  Attrs a;
  a.layer = node_.attrs.layer;
  return a;
}

void Definition::emit_to(ValueId out, Op op, const Attrs& attrs, std::vector<ValueId> inputs) {
  nodes_.push_back(Node{op, attrs, std::move(inputs), {out}});
}

ValueId Definition::emit(Op op, const Attrs& attrs, std::vector<ValueId> inputs, const Shape& shape, const char* part) {
  Value v;
  v.name =
      (node_.outputs.empty() ? std::string(op_info(node_.op).name) : graph_.value(node_.outputs[0]).name) + "." + part;
  v.shape = shape;
  graph_.values.push_back(std::move(v));
  const auto id = static_cast<ValueId>(graph_.values.size() - 1);
  emit_to(id, op, attrs, std::move(inputs));
  return id;
}

void Definition::emit_all(Op op, const Attrs& attrs, std::vector<ValueId> inputs) {
  nodes_.push_back(Node{op, attrs, std::move(inputs), node_.outputs});
}

void Definition::emit_effect(Op op, const Attrs& attrs, std::vector<ValueId> inputs) {
  nodes_.push_back(Node{op, attrs, std::move(inputs), {}});
}

DefineFn find_definition(Op op) {
  switch (op) {
    case Op::kRmsNormMul: return define_rms_norm_mul;
    case Op::kMatMulGroup: return define_matmul_group;
    case Op::kMatMulAdd: return define_matmul_add;
    case Op::kGatedAct: return define_gated_act;
    case Op::kRopeStore: return define_rope_store;
    case Op::kAttention: return define_attention;
    case Op::kNormMatMulGroup: return define_norm_matmul_group;
    default: return nullptr;
  }
}

namespace {

// Appends the node, or what it stands for. Definitions only use ops nearer to the primitives, so this ends.
Status append(Graph& graph, Node node, const std::function<bool(const Graph&, const Node&)>& keep,
              std::vector<Node>& out) {
  if (keep(graph, node)) {
    out.push_back(std::move(node));
    return {};
  }
  const DefineFn define = find_definition(node.op);
  if (define == nullptr) {
    return make_error(ErrorCode::kUnsupported, "[decompose] {}: a primitive the backend does not have",
                      op_text(node.op, graph.input_descs(node)));
  }
  Definition definition(graph, node);
  define(definition);
  for (Node& part : std::move(definition).take()) MINFER_TRY(append(graph, std::move(part), keep, out));
  return {};
}

}  // namespace

Status decompose(Graph& graph, const std::function<bool(const Graph&, const Node&)>& keep) {
  std::vector<Node> out;
  out.reserve(graph.nodes.size());
  for (Node& node : graph.nodes) MINFER_TRY(append(graph, std::move(node), keep, out));
  graph.nodes = std::move(out);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (ValueId v : graph.nodes[i].outputs) graph.values[static_cast<size_t>(v)].producer = static_cast<NodeId>(i);
  }
  return {};
}

}  // namespace minfer
