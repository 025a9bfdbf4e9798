// Builder: appends nodes to a graph with shape inference. The first error sticks: later calls return kNoValue and
// finish() reports it, so that model code reads as straight lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace minfer {

class Builder {
 public:
  Builder();

  // --- external values (each made once; asking again gives the same id) ---
  ValueId input(InputKind kind, Shape shape);
  ValueId weight(int32_t index, std::string_view name, DType dtype, Shape shape);
  ValueId kv_region(int32_t layer, bool is_v, DType dtype, int64_t n_slots, int64_t width);  // shape [n_slots, width]

  // --- one node of any op; outputs are named "<name>" (several: "<name>.0", ...) ---
  // After an error node() returns kMaxOutputs times kNoValue, so that its result may be indexed all the same; node1()
  // of an op without outputs returns kNoValue.
  std::vector<ValueId> node(Op op, Attrs attrs, std::vector<ValueId> inputs, std::string name);
  ValueId node1(Op op, Attrs attrs, std::vector<ValueId> inputs, std::string name);

  void set_layer(int32_t layer) { layer_ = layer; }  // stamped into attrs.layer of the nodes that follow
  int32_t layer() const { return layer_; }
  void mark_output(ValueId id);
  const Shape& shape(ValueId id) const;
  bool failed() const { return error_.has_value(); }
  void fail(Error error);

  // The graph, verified.
  Result<Graph> finish() &&;

 private:
  ValueId add(Value v);
  ValueId external(Value v, std::unordered_map<int32_t, ValueId>& known);  // by Value::external

  Graph graph_;
  std::unordered_map<int32_t, ValueId> weights_, regions_;
  std::optional<Error> error_;
  int32_t layer_ = -1;
};

}  // namespace minfer
