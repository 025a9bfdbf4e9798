// The attention block: norm, q/k/v, rope, KV store, attention, output projection, residual.
#include <fmt/core.h>

#include "model/blocks/blocks.h"

namespace minfer {
namespace {

std::string tensor_name(int32_t layer, const char* name) { return fmt::format("blk.{}.{}.weight", layer, name); }
std::string bias_name(int32_t layer, const char* name) { return fmt::format("blk.{}.{}.bias", layer, name); }

ValueId linear(GraphContext& g, ValueId x, int32_t w, int32_t bias, const std::string& name) {
  ValueId y = g.b.node1(Op::kMatMul, {}, {x, g.weight(w)}, name);
  if (bias >= 0) y = g.b.node1(Op::kAdd, {}, {y, g.weight(bias)}, name + "_bias");
  return y;
}

ValueId rope(GraphContext& g, ValueId x, ValueId table, const std::string& name) {
  Attrs a;
  a.head_dim = g.hp.head_dim;
  a.rope_style = g.hp.rope_style;
  return g.b.node1(Op::kRope, a, {x, table}, name);
}

ValueId rope_table(GraphContext& g, ValueId positions, bool local, const char* name) {
  Attrs a;
  a.scale = g.w.rope_mscale;
  const int32_t inv = local && g.w.inv_freq_local >= 0 ? g.w.inv_freq_local : g.w.inv_freq;
  return g.b.node1(Op::kRopeTable, a, {positions, g.weight(inv)}, name);
}

}  // namespace

void attention_tensors(WeightTable& t, const HParams& hp, int32_t l, LayerWeights& w) {
  const int64_t q = int64_t{hp.n_head} * hp.head_dim, kv = hp.kv_width(), e = hp.n_embd;
  w.attn_norm = t.need(tensor_name(l, "attn_norm"), {e}, WeightRole::kVector);
  w.wq = t.need(tensor_name(l, "attn_q"), {q, e}, WeightRole::kMatMul);
  w.wk = t.need(tensor_name(l, "attn_k"), {kv, e}, WeightRole::kMatMul);
  w.wv = t.need(tensor_name(l, "attn_v"), {kv, e}, WeightRole::kMatMul);
  w.wo = t.need(tensor_name(l, "attn_output"), {e, q}, WeightRole::kMatMul);
  w.bq = t.maybe(bias_name(l, "attn_q"), {q}, WeightRole::kVector);
  w.bk = t.maybe(bias_name(l, "attn_k"), {kv}, WeightRole::kVector);
  w.bv = t.maybe(bias_name(l, "attn_v"), {kv}, WeightRole::kVector);
  w.bo = t.maybe(bias_name(l, "attn_output"), {e}, WeightRole::kVector);
}

ValueId attention_block(GraphContext& g, int32_t l, ValueId x) {
  const LayerWeights& w = g.w.layers[static_cast<size_t>(l)];
  const HParams& hp = g.hp;
  const auto name = [l](const char* s) { return fmt::format("l{}.{}", l, s); };
  const bool last = l + 1 == hp.n_layer;
  const bool prune = last && g.prunes();
  const bool local = hp.layer_is_local(l);
  const int64_t n = g.p.n_tokens, m = g.p.n_outputs;

  const ValueId positions = g.b.input(InputKind::kPositions, {n});
  const ValueId slots = g.b.input(InputKind::kSlots, {n});
  const ValueId xn = norm(g, x, w.attn_norm, "attn_norm");

  // The queries: all tokens, or only the rows whose logits are wanted.
  ValueId xq = xn, q_positions = positions, q_seqs = kNoValue;
  if (prune && m > 0) {
    const ValueId rows = g.b.input(InputKind::kOutRows, {m});
    xq = g.b.node1(Op::kGetRows, {}, {xn, rows}, name("attn_norm_rows"));
    x = g.b.node1(Op::kGetRows, {}, {x, rows}, name("residual_rows"));
    q_positions = g.b.input(InputKind::kOutPositions, {m});
    q_seqs = g.b.input(InputKind::kOutSeqs, {m});
  } else {
    q_seqs = g.b.input(InputKind::kSeqs, {n});
  }
  const bool has_q = !prune || m > 0;

  ValueId q = has_q ? linear(g, xq, w.wq, w.bq, name("q")) : kNoValue;
  ValueId k = linear(g, xn, w.wk, w.bk, name("k"));
  const ValueId v = linear(g, xn, w.wv, w.bv, name("v"));
  if (w.q_norm >= 0 && has_q) q = norm(g, q, w.q_norm, "q_norm", hp.head_dim);
  if (w.k_norm >= 0) k = norm(g, k, w.k_norm, "k_norm", hp.head_dim);

  const ValueId table = rope_table(g, positions, local, local ? "rope_table_local" : "rope_table");
  if (has_q) q = rope(g, q, prune ? rope_table(g, q_positions, local, "rope_table_out") : table, name("q_rope"));
  k = rope(g, k, table, name("k_rope"));

  Attrs kv;
  kv.n_head_kv = hp.n_head_kv;
  kv.head_dim = hp.head_dim;
  const ValueId region_k = g.b.kv_region(l, false, g.p.type_k, g.n_slots, hp.kv_width());
  const ValueId region_v = g.b.kv_region(l, true, g.p.type_v, g.n_slots, hp.kv_width());
  g.b.node(Op::kKvStoreK, kv, {k, region_k, slots}, name("k_store"));
  g.b.node(Op::kKvStoreV, kv, {v, region_v, slots}, name("v_store"));
  if (!has_q) return kNoValue;

  Attrs a;
  a.n_head = hp.n_head;
  a.n_head_kv = hp.n_head_kv;
  a.head_dim = hp.head_dim;
  a.scale = hp.attn_scale;
  a.softcap = hp.attn_softcap;
  a.window = local ? hp.window : 0;
  a.page_size = g.p.page_size;
  a.n_kv = g.p.n_kv;
  const ValueId blocks = g.b.input(InputKind::kBlockTable, {g.p.n_seq, g.p.pages_per_seq});
  const ValueId scores = g.b.node1(Op::kAttnScores, a, {q, region_k, q_positions, q_seqs, blocks}, name("attn_scores"));
  const ValueId weights = g.b.node1(Op::kAttnSoftmax, a, {scores, q_positions}, name("attn_weights"));
  const ValueId mix = g.b.node1(Op::kAttnMix, a, {weights, region_v, q_positions, q_seqs, blocks}, name("attn"));
  ValueId o = linear(g, mix, w.wo, w.bo, name("attn_out"));
  if (w.attn_post_norm >= 0) o = norm(g, o, w.attn_post_norm, "attn_post_norm");
  return g.b.node1(Op::kAdd, {}, {o, x}, name("attn_residual"));
}

}  // namespace minfer
