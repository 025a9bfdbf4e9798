// Verification of whole graphs.
#include <set>

#include "graph/graph.h"

namespace minfer {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : g_(graph), made_(graph.values.size(), false) {}

  Status run() {
    MINFER_TRY(values());
    for (size_t i = 0; i < g_.nodes.size(); ++i) MINFER_TRY(node(i));
    for (ValueId id : g_.outputs) {
      if (!exists(id)) return make_error(ErrorCode::kInternal, "[verify] output value {} does not exist", id);
      if (!made_[idx(id)])
        return make_error(ErrorCode::kInternal, "[verify] output '{}' is never made", g_.value(id).name);
    }
    return {};
  }

 private:
  static size_t idx(ValueId id) { return static_cast<size_t>(id); }
  bool exists(ValueId id) const { return id >= 0 && idx(id) < g_.values.size(); }

  template <typename... Args>
  Status bad(size_t node, fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::kInternal, "[verify] node {} {}: {}", node, op_info(g_.nodes[node].op).name,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  // External values are there from the start, and each stands for a different thing.
  Status values() {
    std::set<std::pair<ValueKind, int32_t>> seen;
    for (size_t i = 0; i < g_.values.size(); ++i) {
      const Value& v = g_.values[i];
      if (v.kind == ValueKind::kActivation) continue;
      made_[i] = true;
      const bool input = v.kind == ValueKind::kInput;
      if (v.producer != -1)
        return make_error(ErrorCode::kInternal, "[verify] external value '{}' has producer {}", v.name, v.producer);
      if (!input && v.external < 0)
        return make_error(ErrorCode::kInternal, "[verify] external value '{}' has index {}", v.name, v.external);
      if (!seen.emplace(v.kind, input ? static_cast<int32_t>(v.input) : v.external).second) {
        return make_error(ErrorCode::kInternal, "[verify] external value '{}' is there twice", v.name);
      }
    }
    return {};
  }

  Status node(size_t n) {
    const Node& node = g_.nodes[n];
    if (static_cast<int>(node.op) >= kOpCount)
      return make_error(ErrorCode::kInternal, "[verify] node {}: no op {}", n, static_cast<int>(node.op));
    if (node.inputs.size() > kMaxInputs || node.outputs.size() > kMaxOutputs) {
      return bad(n, "{} inputs and {} outputs, at most {} and {}", node.inputs.size(), node.outputs.size(), kMaxInputs,
                 kMaxOutputs);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) MINFER_TRY(input(n, i));
    auto inferred = infer_outputs(node.op, node.attrs, g_.input_descs(node));
    if (!inferred.ok()) return std::move(inferred).error().with_context(fmt::format("[verify] node {}", n));
    const std::vector<ValueDesc>& want = *inferred;
    if (want.size() != node.outputs.size()) return bad(n, "{} outputs, expected {}", node.outputs.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) MINFER_TRY(output(n, i, want[i]));
    return regions(n);
  }

  Status input(size_t n, size_t i) {
    const Node& node = g_.nodes[n];
    const OpInfo& info = op_info(node.op);
    const ValueId id = node.inputs[i];
    if (id == kNoValue) return {};  // the shape rule says whether it may be absent
    if (!exists(id)) return bad(n, "input {}: value {} does not exist", i, id);
    const Value& v = g_.value(id);
    if (!made_[idx(id)]) return bad(n, "input {} ('{}') is used before it is made", i, v.name);
    const int pos = static_cast<int>(i);
    const bool wants_region = pos == info.region_k || pos == info.region_v;
    const bool is_region = v.kind == ValueKind::kKvRegion;
    if (wants_region != is_region) {
      return bad(n, "input {} ('{}'): {}", i, v.name,
                 wants_region ? "expected a KV region" : "a KV region, expected a tensor");
    }
    if (is_region && v.external % 2 != (pos == info.region_v ? 1 : 0)) {
      return bad(n, "input {} ('{}'): expected a {} region", i, v.name, pos == info.region_v ? "V" : "K");
    }
    return {};
  }

  Status output(size_t n, size_t i, const ValueDesc& want) {
    const ValueId id = g_.nodes[n].outputs[i];
    if (!exists(id)) return bad(n, "output {}: value {} does not exist", i, id);
    const Value& v = g_.value(id);
    if (v.kind != ValueKind::kActivation) return bad(n, "output {} ('{}') is an external value", i, v.name);
    if (made_[idx(id)]) return bad(n, "output {} ('{}') is made twice", i, v.name);
    if (v.producer != static_cast<NodeId>(n))
      return bad(n, "output {} ('{}') names producer {}", i, v.name, v.producer);
    if (v.dtype != want.dtype || !(v.shape == want.shape)) {
      return bad(n, "output {} ('{}') is {} {}, the shape rule says {} {}", i, v.name, dtype_info(v.dtype).name,
                 v.shape.str(), dtype_info(want.dtype).name, want.shape.str());
    }
    made_[idx(id)] = true;
    return {};
  }

  // A region is read only after all stores of the step to it.
  Status regions(size_t n) {
    const Node& node = g_.nodes[n];
    const OpInfo& info = op_info(node.op);
    for (int pos : {info.region_k, info.region_v}) {
      if (pos < 0) continue;
      const ValueId id = node.inputs[static_cast<size_t>(pos)];
      if (!info.side_effect) {
        read_.insert(id);
      } else if (read_.count(id) != 0) {
        return bad(n, "stores to '{}' after it was read", g_.value(id).name);
      }
    }
    return {};
  }

  const Graph& g_;
  std::vector<bool> made_;
  std::set<ValueId> read_;  // regions read so far
};

}  // namespace

Status verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace minfer
