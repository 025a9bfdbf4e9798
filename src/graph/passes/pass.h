// Passes: named rewrites of a graph. The runner skips the ones named in MINFER_DISABLE_PASS (comma separated),
// times each, verifies the graph after each and can hand the text of the graph before and after to a callback.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace minfer {

struct Pass {
  const char* name;
  Status (*run)(Graph& graph);
};

// The fusions, in the order they run. Each is exact: the fused graph gives the bits of the unfused one.
//   merge_equal (one node for several equal ones, such as the angle tables of all layers),
//   fuse_rms_norm_mul, fuse_gated_act, fuse_matmul_add (bias, residual), fuse_matmul_group (same x),
//   fuse_rope_store (q/k norm + rope + both stores), fuse_attention, remove_dead
std::span<const Pass> fusion_passes();

struct PassReport {
  std::string name;
  bool skipped = false;
  double ms = 0;
  int nodes_before = 0, nodes_after = 0;
};

// Sees the graph before and after each pass that runs (to write its text somewhere).
using PassObserver = std::function<void(const char* pass, bool after, const Graph& graph)>;

// Runs passes in order. `disabled` = names to skip (unknown names are an error that lists the valid ones).
Result<std::vector<PassReport>> run_passes(Graph& graph, std::span<const Pass> passes,
                                           const std::vector<std::string>& disabled, const PassObserver& observer = {});

// The names in MINFER_DISABLE_PASS, in order; empty when it is not set.
std::vector<std::string> disabled_passes_from_env();

// Replaces every node for which `keep` returns false by its definition in primitives (recursively). Errors when a
// primitive itself is refused.
Status decompose(Graph& graph, const std::function<bool(const Graph&, const Node&)>& keep);

}  // namespace minfer
