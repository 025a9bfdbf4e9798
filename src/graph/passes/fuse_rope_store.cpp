// fuse_rope_store: [norm over heads] -> rope -> kv_store_k of k, kv_store_v of v, and [norm over heads] -> rope of the
// q that shares k's angle table, become one node. A q with a table of its own (the wanted rows of a pruned last layer)
// stays as it is, and the node has no q.
#include <algorithm>

#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace minfer {
namespace {

// One rotated tensor: x -> [rms_norm_mul over head_dim] -> rope.
struct Rotated {
  NodeId rope = -1;
  NodeId norm = -1;           // -1 = none
  ValueId x = kNoValue;       // before the norm
  ValueId weight = kNoValue;  // of the norm
};

Rotated follow(const Rewrite& rw, NodeId rope) {
  Rotated r;
  r.rope = rope;
  r.x = rw.node(rope).inputs[0];
  const int32_t head_dim = rw.node(rope).attrs.head_dim;
  const NodeId norm = rw.only_producer(r.x, Op::kRmsNormMul);
  if (norm < 0 || rw.node(norm).attrs.group != head_dim || rw.value(rw.node(norm).inputs[1]).shape[0] != head_dim)
    return r;
  r.norm = norm;
  r.x = rw.node(norm).inputs[0];
  r.weight = rw.node(norm).inputs[1];
  return r;
}

// The kv_store_v of the layer that stores at the same slots and stands next to `store_k`.
NodeId find_store_v(const Rewrite& rw, NodeId store_k) {
  const Node& k = rw.node(store_k);
  for (NodeId n : rw.users(k.inputs[2])) {
    if (!rw.is(n, Op::kKvStoreV) || rw.node(n).inputs[2] != k.inputs[2] || !(rw.node(n).attrs == k.attrs)) continue;
    if (rw.value(rw.node(n).inputs[1]).external == rw.value(k.inputs[1]).external + 1) return n;
  }
  return -1;
}

// The one other rope with the same table, attributes and number of rows.
NodeId find_q(const Rewrite& rw, NodeId k_rope) {
  const Node& k = rw.node(k_rope);
  NodeId found = -1;
  for (NodeId n : rw.users(k.inputs[1])) {
    if (n == k_rope || !rw.is(n, Op::kRope) || rw.node(n).inputs[1] != k.inputs[1] || !(rw.node(n).attrs == k.attrs))
      continue;
    if (found >= 0) return -1;
    found = n;
  }
  return found;
}

// Where the fused node may stand: after every member, before every reader of what the members make. All members that
// remain in `members` move there.
bool fits(const Rewrite& rw, NodeId at, const std::vector<ValueId>& made) {
  for (ValueId v : made) {
    for (NodeId user : rw.users(v)) {
      if (user < at) return false;
    }
  }
  return true;
}

// Nothing between the stores and `at` reads or writes the regions (an attention that must see the new rows, say).
bool regions_quiet(const Rewrite& rw, const std::vector<NodeId>& stores, NodeId at) {
  for (NodeId store : stores) {
    for (NodeId user : rw.users(rw.node(store).inputs[1])) {
      if (user > store && user < at) return false;
    }
  }
  return true;
}

void fuse_at(Rewrite& rw, NodeId store_k) {
  const NodeId k_rope = rw.only_producer(rw.node(store_k).inputs[0], Op::kRope);
  const NodeId store_v = find_store_v(rw, store_k);
  if (k_rope < 0 || store_v < 0 || rw.node(k_rope).attrs.head_dim != rw.node(store_k).attrs.head_dim) return;
  const Rotated k = follow(rw, k_rope);
  const ValueId v = rw.node(store_v).inputs[0];
  NodeId at = std::max(store_k, store_v);

  Rotated q;
  if (const NodeId q_rope = find_q(rw, k_rope); q_rope >= 0) {
    q = follow(rw, q_rope);
    const bool eps_differs = q.norm >= 0 && k.norm >= 0 && rw.node(q.norm).attrs.eps != rw.node(k.norm).attrs.eps;
    const NodeId later = std::max(at, q_rope);
    if (eps_differs || !fits(rw, later, rw.node(q_rope).outputs) || !regions_quiet(rw, {store_k, store_v}, later)) {
      q = {};
    } else {
      at = later;
    }
  }
  if (!regions_quiet(rw, {store_k, store_v}, at)) return;

  Node fused{Op::kRopeStore, {}, {}, {}};
  fused.attrs = rw.node(store_k).attrs;  // n_head_kv, head_dim, layer
  fused.attrs.rope_style = rw.node(k_rope).attrs.rope_style;
  if (k.norm >= 0 || q.norm >= 0) fused.attrs.eps = rw.node(k.norm >= 0 ? k.norm : q.norm).attrs.eps;
  fused.inputs = {q.x,
                  k.x,
                  v,
                  q.weight,
                  k.weight,
                  rw.node(k_rope).inputs[1],
                  rw.node(store_k).inputs[1],
                  rw.node(store_v).inputs[1],
                  rw.node(store_k).inputs[2]};
  if (q.rope >= 0) {
    fused.attrs.n_head = static_cast<int32_t>(rw.value(q.x).shape.last() / fused.attrs.head_dim);
    fused.outputs = rw.node(q.rope).outputs;
  }
  for (NodeId n : {q.rope, q.norm, k.rope, k.norm, store_k, store_v}) {
    if (n >= 0) rw.remove(n);
  }
  rw.put(at, std::move(fused));
}

}  // namespace

Status fuse_rope_store(Graph& graph) {
  Rewrite rw(graph);
  for (NodeId n = 0; n < rw.size(); ++n) {
    if (rw.is(n, Op::kKvStoreK)) fuse_at(rw, n);
  }
  rw.commit();
  return {};
}

}  // namespace minfer
