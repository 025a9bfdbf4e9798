// Building graphs.
#include "graph/builder.h"

namespace minfer {

Builder::Builder() = default;

void Builder::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

ValueId Builder::input(InputKind kind, Shape shape) {
  if (error_) return kNoValue;
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const Value& v = graph_.values[i];
    if (v.kind != ValueKind::kInput || v.input != kind) continue;
    if (!(v.shape == shape)) {
      fail(make_error(ErrorCode::kInternal, "[graph] input '{}': asked for {}, made before as {}", v.name, shape.str(),
                      v.shape.str()));
      return kNoValue;
    }
    return static_cast<ValueId>(i);
  }
  Value v;
  v.name = input_kind_name(kind);
  v.kind = ValueKind::kInput;
  v.dtype = DType::kI32;
  v.shape = shape;
  v.input = kind;
  return add(std::move(v));
}

ValueId Builder::weight(int32_t index, std::string_view name, DType dtype, Shape shape) {
  Value v;
  v.name = name;
  v.kind = ValueKind::kWeight;
  v.dtype = dtype;
  v.shape = shape;
  v.external = index;
  return external(std::move(v), weights_);
}

ValueId Builder::kv_region(int32_t layer, bool is_v, DType dtype, int64_t n_slots, int64_t width) {
  Value v;
  v.name = fmt::format("l{}.kv_{}", layer, is_v ? 'v' : 'k');
  v.kind = ValueKind::kKvRegion;
  v.dtype = dtype;
  v.shape = {n_slots, width};
  v.external = 2 * layer + (is_v ? 1 : 0);
  return external(std::move(v), regions_);
}

ValueId Builder::external(Value v, std::unordered_map<int32_t, ValueId>& known) {
  if (error_) return kNoValue;
  if (v.external < 0) {
    fail(make_error(ErrorCode::kInternal, "[graph] '{}': external index {} is negative", v.name, v.external));
    return kNoValue;
  }
  const auto [it, fresh] = known.try_emplace(v.external, static_cast<ValueId>(graph_.values.size()));
  if (fresh) return add(std::move(v));
  const Value& old = graph_.value(it->second);
  if (old.dtype != v.dtype || !(old.shape == v.shape)) {
    fail(make_error(ErrorCode::kInternal, "[graph] '{}': asked for {} {}, made before as {} {}", v.name,
                    dtype_info(v.dtype).name, v.shape.str(), dtype_info(old.dtype).name, old.shape.str()));
    return kNoValue;
  }
  return it->second;
}

ValueId Builder::add(Value v) {
  graph_.values.push_back(std::move(v));
  return static_cast<ValueId>(graph_.values.size() - 1);
}

std::vector<ValueId> Builder::node(Op op, Attrs attrs, std::vector<ValueId> inputs, std::string name) {
  const std::vector<ValueId> nothing(kMaxOutputs, kNoValue);  // callers index it as if all had gone well
  if (error_) return nothing;
  attrs.layer = layer_;
  std::vector<ValueDesc> in;
  for (ValueId id : inputs) {
    if (id != kNoValue && (id < 0 || static_cast<size_t>(id) >= graph_.values.size())) {
      fail(make_error(ErrorCode::kInternal, "[graph] node '{}': value {} does not exist", name, id));
      return nothing;
    }
    in.push_back(id == kNoValue ? ValueDesc{DType::kF32, {}, true} : graph_.desc(id));
  }
  auto inferred = infer_outputs(op, attrs, in);
  if (!inferred.ok()) {
    fail(std::move(inferred).error().with_context(fmt::format("[graph] node '{}'", name)));
    return nothing;
  }
  const std::vector<ValueDesc>& out = *inferred;
  std::vector<ValueId> ids;
  for (size_t i = 0; i < out.size(); ++i) {
    Value v;
    v.name = out.size() == 1 ? name : fmt::format("{}.{}", name, i);
    v.dtype = out[i].dtype;
    v.shape = out[i].shape;
    v.producer = static_cast<NodeId>(graph_.nodes.size());
    ids.push_back(add(std::move(v)));
  }
  graph_.nodes.push_back(Node{op, attrs, std::move(inputs), ids});
  return ids;
}

ValueId Builder::node1(Op op, Attrs attrs, std::vector<ValueId> inputs, std::string name) {
  const std::vector<ValueId> out = node(op, attrs, std::move(inputs), std::move(name));
  return out.empty() ? kNoValue : out[0];
}

void Builder::mark_output(ValueId id) {
  if (error_) return;
  if (id < 0 || static_cast<size_t>(id) >= graph_.values.size()) {
    fail(make_error(ErrorCode::kInternal, "[graph] output: value {} does not exist", id));
    return;
  }
  graph_.outputs.push_back(id);
}

const Shape& Builder::shape(ValueId id) const {
  static const Shape kNone;
  return id >= 0 && static_cast<size_t>(id) < graph_.values.size() ? graph_.value(id).shape : kNone;
}

Result<Graph> Builder::finish() && {
  if (error_) return std::move(*error_);
  MINFER_TRY(verify(graph_));
  return std::move(graph_);
}

}  // namespace minfer
