// Graph: a pure description of one step of a model. Values and nodes are indices into vectors; node order is
// execution order (a KV store always stands before the attention that reads it).
// Threads: const access from many; building from one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/op.h"
#include "tensor/view.h"

namespace minfer {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an optional input that is absent

// The inputs a step fills in before a run; a graph uses those it needs.
enum class InputKind : uint8_t {
  kTokens,        // i32[n_tokens]
  kPositions,     // i32[n_tokens]
  kSlots,         // i32[n_tokens]: row of the KV regions that the token's K and V go to
  kSeqs,          // i32[n_tokens]: row of the block table
  kBlockTable,    // i32[n_seq, pages]: page number of the region for each page of positions
  kOutRows,       // i32[n_outputs]: which tokens' logits are wanted
  kOutPositions,  // i32[n_outputs], kOutSeqs: positions and sequences of those rows (for the pruned last layer)
  kOutSeqs,
};
inline constexpr int kInputKindCount = 8;
const char* input_kind_name(InputKind kind);  // "positions"

enum class ValueKind : uint8_t { kInput, kWeight, kKvRegion, kActivation };

struct Value {
  std::string name;  // "blk.3.attn_q", "l3.attn_norm": what traces and dumps show
  ValueKind kind = ValueKind::kActivation;
  DType dtype = DType::kF32;
  Shape shape;
  InputKind input = InputKind::kTokens;  // kInput
  int32_t external = -1;  // kWeight: index into the weight table; kKvRegion: region index (2*layer + is_v)
  NodeId producer = -1;   // kActivation
};

struct Node {
  Op op;
  Attrs attrs;
  std::vector<ValueId> inputs;  // kNoValue where absent
  std::vector<ValueId> outputs;
};

// What decides a graph's topology; two steps with equal parameters share graph and plan.
struct GraphParams {
  int32_t n_tokens = 0;
  int32_t n_seq = 1;
  int32_t n_outputs = 0;      // rows whose logits are wanted, 0..n_tokens
  bool hidden = false;        // instead of logits, the rows that the output matrix would get: [n_outputs, n_embd]
  int32_t pages_per_seq = 0;  // width of the block table
  int32_t page_size = 0;
  int32_t n_kv = 0;  // bound on positions for the decomposed attention, a multiple of 256
  DType type_k = DType::kF16, type_v = DType::kF16;
  bool operator==(const GraphParams&) const = default;
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> outputs;  // kept alive to the end of the run
  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  ValueDesc desc(ValueId id) const;
  std::vector<ValueDesc> input_descs(const Node& node) const;
};

// Checks a whole graph: ids in range, inputs produced before use, each value produced once, shapes equal to what the
// shape rules say, optional inputs only where allowed, every output made, KV regions only where an op wants one, and
// stored to before they are read. Run after every pass.
Status verify(const Graph& graph);

// Graphviz text and JSON of a graph: nodes in order of execution, with the values they read and make.
std::string to_dot(const Graph& graph);
std::string to_json(const Graph& graph);

}  // namespace minfer
