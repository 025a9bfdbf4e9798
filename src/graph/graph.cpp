// Small queries on graphs.
#include "graph/graph.h"

namespace minfer {

const char* input_kind_name(InputKind kind) {
  switch (kind) {
    case InputKind::kTokens: return "tokens";
    case InputKind::kPositions: return "positions";
    case InputKind::kSlots: return "slots";
    case InputKind::kSeqs: return "seqs";
    case InputKind::kBlockTable: return "block_table";
    case InputKind::kOutRows: return "out_rows";
    case InputKind::kOutPositions: return "out_positions";
    case InputKind::kOutSeqs: return "out_seqs";
  }
  return "?";
}

ValueDesc Graph::desc(ValueId id) const {
  if (id == kNoValue) return ValueDesc{DType::kF32, {}, true};
  const Value& v = value(id);
  return ValueDesc{v.dtype, v.shape, false};
}

std::vector<ValueDesc> Graph::input_descs(const Node& node) const {
  std::vector<ValueDesc> out;
  out.reserve(node.inputs.size());
  for (ValueId id : node.inputs) out.push_back(desc(id));
  return out;
}

}  // namespace minfer
