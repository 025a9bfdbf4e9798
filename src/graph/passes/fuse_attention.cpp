// fuse_attention: attn_scores -> attn_softmax -> attn_mix over the same positions, sequences and pages.
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace minfer {
namespace {

// Moving the scores down to the mix must not carry them over a store to the region they read.
bool region_quiet(const Rewrite& rw, ValueId region, NodeId after, NodeId before) {
  for (NodeId n : rw.users(region)) {
    if (n > after && n < before && op_info(rw.node(n).op).side_effect) return false;
  }
  return true;
}

bool same_geometry(const Attrs& a, const Attrs& b) {
  return a.n_head == b.n_head && a.n_head_kv == b.n_head_kv && a.head_dim == b.head_dim && a.window == b.window &&
         a.page_size == b.page_size;
}

}  // namespace

Status fuse_attention(Graph& graph) {
  Rewrite rw(graph);
  for (NodeId mix = 0; mix < rw.size(); ++mix) {
    if (!rw.is(mix, Op::kAttnMix)) continue;
    const std::vector<ValueId>& m = rw.node(mix).inputs;  // weights, region V, positions, seqs, block_table
    const NodeId softmax = rw.only_producer(m[0], Op::kAttnSoftmax);
    if (softmax < 0 || rw.node(softmax).inputs[1] != m[2]) continue;
    const NodeId scores = rw.only_producer(rw.node(softmax).inputs[0], Op::kAttnScores);
    if (scores < 0) continue;
    const std::vector<ValueId>& s = rw.node(scores).inputs;  // q, region K, positions, seqs, block_table
    if (s[2] != m[2] || s[3] != m[3] || s[4] != m[4] || !region_quiet(rw, s[1], scores, mix)) continue;
    const Attrs& from = rw.node(scores).attrs;
    if (!same_geometry(from, rw.node(mix).attrs) || rw.node(softmax).attrs.window != from.window) continue;
    Node fused{Op::kAttention, {}, {s[0], s[1], m[1], m[2], m[3], m[4]}, rw.node(mix).outputs};
    fused.attrs = from;
    rw.remove(scores);
    rw.remove(softmax);
    rw.put(mix, std::move(fused));
  }
  rw.commit();
  return {};
}

}  // namespace minfer
