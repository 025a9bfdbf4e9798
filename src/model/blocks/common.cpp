// Embedding, norms, logits and the usual decoder loop.
#include <fmt/core.h>

#include <cmath>

#include "model/blocks/blocks.h"

namespace minfer {

ValueId GraphContext::weight(int32_t index) const {
  if (index < 0) return kNoValue;
  const auto i = static_cast<size_t>(index);
  return b.weight(index, weights[i].name, views[i].dtype, views[i].shape);
}

void embedding_tensors(WeightTable& t, const HParams& hp, ModelWeights& w) {
  const int64_t v = hp.n_vocab, e = hp.n_embd;
  w.token_embd = t.need("token_embd.weight", {v, e}, WeightRole::kEmbed);
  w.output_norm = t.need("output_norm.weight", {e}, WeightRole::kVector);
  w.output = t.maybe("output.weight", {v, e}, WeightRole::kMatMul);
  if (w.output < 0) w.output = t.again(w.token_embd, WeightRole::kMatMul);
  const int32_t factors = t.maybe("rope_freqs.weight", {hp.n_rot / 2}, WeightRole::kVector);
  const float* f = nullptr;
  if (factors >= 0) {
    const TensorView& view = t.weights()[static_cast<size_t>(factors)].plain;
    if (view.dtype != DType::kF32) {
      t.fail(make_error(ErrorCode::kUnsupported, "[model] tensor 'rope_freqs.weight': found type {}, expected f32",
                        dtype_info(view.dtype).name));
      return;
    }
    f = view.as<float>();
    for (int64_t i = 0; i < hp.n_rot / 2; ++i) {
      if (f[i] > 0 && std::isfinite(f[i])) continue;
      t.fail(make_error(ErrorCode::kCorrupt,
                        "[model] tensor 'rope_freqs.weight': element {}: found {}, expected a finite number above 0", i,
                        f[i]));
      return;
    }
  }
  w.inv_freq = t.table("rope_inv_freq", rope_inv_freq(hp, hp.rope_base, f, &w.rope_mscale));
  if (hp.rope_base_local > 0 && hp.rope_base_local != hp.rope_base) {
    HParams plain = hp;  // the sliding-window layers are not scaled
    plain.rope_scaling = RopeScaling::kNone;
    float mscale = 1;
    w.inv_freq_local = t.table("rope_inv_freq_local", rope_inv_freq(plain, hp.rope_base_local, nullptr, &mscale));
  }
}

ValueId embed(GraphContext& g) {
  const ValueId ids = g.b.input(InputKind::kTokens, {g.p.n_tokens});
  ValueId x = g.b.node1(Op::kEmbed, {}, {ids, g.weight(g.w.token_embd)}, "embed");
  if (g.hp.embd_scale != 1.0f) {
    Attrs a;
    a.scale = g.hp.embd_scale;
    x = g.b.node1(Op::kScale, a, {x}, "embed_scaled");
  }
  return x;
}

ValueId norm(GraphContext& g, ValueId x, int32_t weight, const char* name, int32_t group) {
  Attrs a;
  a.eps = g.hp.rms_eps;
  a.group = group;
  const std::string prefix = g.b.layer() >= 0 ? fmt::format("l{}.", g.b.layer()) : std::string();
  const ValueId y = g.b.node1(Op::kRmsNorm, a, {x}, prefix + name + "_rms");
  return g.b.node1(Op::kMul, {}, {y, g.weight(weight)}, prefix + name);
}

ValueId logits(GraphContext& g, ValueId x) {
  g.b.set_layer(-1);
  x = norm(g, x, g.w.output_norm, "output_norm");
  if (g.p.hidden) return x;
  ValueId y = g.b.node1(Op::kMatMul, {}, {x, g.weight(g.w.output)}, "logits");
  if (g.hp.final_softcap > 0) {
    Attrs a;
    a.softcap = g.hp.final_softcap;
    y = g.b.node1(Op::kSoftcap, a, {y}, "logits_capped");
  }
  return y;
}

ValueId decoder(GraphContext& g) {
  ValueId x = embed(g);
  for (int32_t l = 0; l < g.hp.n_layer; ++l) {
    g.b.set_layer(l);
    x = attention_block(g, l, x);
    if (x == kNoValue) return kNoValue;  // last layer, no logits wanted (or the builder holds an error)
    x = ffn_block(g, l, x);
  }
  return logits(g, x);
}

}  // namespace minfer
