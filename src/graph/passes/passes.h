// The passes, one file each. Internal to src/graph; passes/run_passes.cpp lists them in order.
#pragma once

#include "graph/passes/pass.h"

namespace minfer {

Status merge_equal(Graph& graph);
Status fuse_rms_norm_mul(Graph& graph);
Status fuse_gated_act(Graph& graph);
Status fuse_matmul_add(Graph& graph);
Status fuse_matmul_group(Graph& graph);
Status fuse_norm_matmul(Graph& graph);
Status fuse_rope_store(Graph& graph);
Status fuse_attention(Graph& graph);
Status remove_dead(Graph& graph);

}  // namespace minfer
