// The feed-forward block: gated MLP or mixture of experts, with its norm and residual.
#include <fmt/core.h>

#include "model/blocks/blocks.h"

namespace minfer {
namespace {

std::string tensor_name(int32_t layer, const char* name) { return fmt::format("blk.{}.{}.weight", layer, name); }

ValueId gated_act(GraphContext& g, ValueId gate, ValueId up, const std::string& name) {
  Attrs a;
  a.act = g.hp.act;
  const ValueId activated = g.b.node1(Op::kUnary, a, {gate}, name + "_act");
  return g.b.node1(Op::kMul, {}, {activated, up}, name);
}

ValueId mlp(GraphContext& g, const LayerWeights& w, ValueId x, int32_t l) {
  const auto name = [l](const char* s) { return fmt::format("l{}.{}", l, s); };
  const ValueId gate = g.b.node1(Op::kMatMul, {}, {x, g.weight(w.gate)}, name("ffn_gate"));
  const ValueId up = g.b.node1(Op::kMatMul, {}, {x, g.weight(w.up)}, name("ffn_up"));
  return g.b.node1(Op::kMatMul, {}, {gated_act(g, gate, up, name("ffn_gated")), g.weight(w.down)}, name("ffn_down"));
}

ValueId moe(GraphContext& g, const LayerWeights& w, ValueId x, int32_t l) {
  const auto name = [l](const char* s) { return fmt::format("l{}.{}", l, s); };
  Attrs a;
  a.top_k = g.hp.n_expert_used;
  a.norm_topk = g.hp.norm_topk;
  const ValueId scores = g.b.node1(Op::kMatMul, {}, {x, g.weight(w.router)}, name("router"));
  const auto route = g.b.node(Op::kMoeRoute, a, {scores}, name("route"));
  if (route.size() != 2) return kNoValue;  // the builder holds the error
  Attrs m;
  m.top_k = g.hp.n_expert_used;
  const ValueId gate = g.b.node1(Op::kMoeMatMul, m, {x, g.weight(w.gate_exps), route[0]}, name("moe_gate"));
  const ValueId up = g.b.node1(Op::kMoeMatMul, m, {x, g.weight(w.up_exps), route[0]}, name("moe_up"));
  const ValueId down =
      g.b.node1(Op::kMoeMatMul, m, {gated_act(g, gate, up, name("moe_gated")), g.weight(w.down_exps), route[0]},
                name("moe_down"));
  return g.b.node1(Op::kMoeCombine, m, {down, route[1]}, name("moe"));
}

}  // namespace

void mlp_tensors(WeightTable& t, const HParams& hp, int32_t l, LayerWeights& w) {
  const int64_t f = hp.n_ff, e = hp.n_embd;
  w.ffn_norm = t.need(tensor_name(l, "ffn_norm"), {e}, WeightRole::kVector);
  w.gate = t.need(tensor_name(l, "ffn_gate"), {f, e}, WeightRole::kMatMul);
  w.up = t.need(tensor_name(l, "ffn_up"), {f, e}, WeightRole::kMatMul);
  w.down = t.need(tensor_name(l, "ffn_down"), {e, f}, WeightRole::kMatMul);
}

void moe_tensors(WeightTable& t, const HParams& hp, int32_t l, LayerWeights& w) {
  const int64_t f = hp.n_ff, e = hp.n_embd, x = hp.n_expert;
  w.ffn_norm = t.need(tensor_name(l, "ffn_norm"), {e}, WeightRole::kVector);
  w.router = t.need(tensor_name(l, "ffn_gate_inp"), {x, e}, WeightRole::kMatMul);
  w.gate_exps = t.need(tensor_name(l, "ffn_gate_exps"), {x, f, e}, WeightRole::kMatMul);
  w.up_exps = t.need(tensor_name(l, "ffn_up_exps"), {x, f, e}, WeightRole::kMatMul);
  w.down_exps = t.need(tensor_name(l, "ffn_down_exps"), {x, e, f}, WeightRole::kMatMul);
}

ValueId ffn_block(GraphContext& g, int32_t l, ValueId x) {
  const LayerWeights& w = g.w.layers[static_cast<size_t>(l)];
  const ValueId xn = norm(g, x, w.ffn_norm, "ffn_norm");
  ValueId y = w.router >= 0 ? moe(g, w, xn, l) : mlp(g, w, xn, l);
  if (w.ffn_post_norm >= 0) y = norm(g, y, w.ffn_post_norm, "ffn_post_norm");
  return g.b.node1(Op::kAdd, {}, {y, x}, fmt::format("l{}.ffn_residual", l));
}

}  // namespace minfer
