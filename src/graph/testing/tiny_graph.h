// A decoder graph in primitives, as model code emits it, of any size: for tests of graphs, passes and plans.
#pragma once

#include "graph/builder.h"

namespace minfer::testing {

struct TinyGraph {
  int32_t n_layer = 2;
  int32_t n_tokens = 3, n_outputs = 3;
  int32_t n_embd = 64, n_ff = 96, n_vocab = 40;
  int32_t n_head = 4, n_head_kv = 2, head_dim = 16;
  bool qk_norm = false;  // Qwen3
  bool bias = false;     // Qwen2: q, k, v
  DType type_kv = DType::kF16;
};

// Fewer outputs than tokens prune the last layer: its queries and tail run for the wanted rows only.
Result<Graph> make_tiny_graph(const TinyGraph& t);

// "rms_norm_mul matmul_group ..." in order.
std::string op_names(const Graph& graph);
int count_ops(const Graph& graph, Op op);

}  // namespace minfer::testing
