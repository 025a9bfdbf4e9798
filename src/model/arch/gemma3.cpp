// gemma3: Gemma 3 (text). Norms before and after both blocks, q/k head norms, five sliding-window layers to each global
// one, a rope base of its own for the window layers.
// Source: Gemma Team 2025.
#include <fmt/core.h>

#include <cmath>

#include "model/arch/archs.h"

namespace minfer::archs {
namespace {

Status hparams(const gguf::Metadata& m, HParams& hp) {
  hp.rope_style = RopeStyle::kNeox;
  hp.embd_scale = std::sqrt(static_cast<float>(hp.n_embd));
  hp.act = Act::kGeluTanh;
  hp.window = MINFER_TRY(m.get_or<int32_t>("gemma3.attention.sliding_window", 0));
  hp.window_pattern = MINFER_TRY(m.get_or<int32_t>("gemma3.attention.sliding_window_pattern", 6));
  hp.rope_base_local = MINFER_TRY(m.get_or<double>("gemma3.rope.local.freq_base", 10000.0));
  hp.final_softcap = MINFER_TRY(m.get_or<float>("gemma3.final_logit_softcapping", 0.0f));
  // The 27B model scales scores by the embedding width per head instead of the head size.
  if (hp.n_layer == 62) hp.attn_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hp.n_embd) / hp.n_head));
  return {};
}

void tensors(WeightTable& t, const HParams& hp, ModelWeights& w) {
  embedding_tensors(t, hp, w);
  for (int32_t l = 0; l < hp.n_layer; ++l) {
    LayerWeights& layer = w.layers.emplace_back();
    const auto need = [&](const char* name, int64_t n) {
      return t.need(fmt::format("blk.{}.{}.weight", l, name), {n}, WeightRole::kVector);
    };
    attention_tensors(t, hp, l, layer);
    layer.q_norm = need("attn_q_norm", hp.head_dim);
    layer.k_norm = need("attn_k_norm", hp.head_dim);
    layer.attn_post_norm = need("post_attention_norm", hp.n_embd);
    mlp_tensors(t, hp, l, layer);
    layer.ffn_post_norm = need("post_ffw_norm", hp.n_embd);
  }
}

}  // namespace

Arch gemma3() {
  return {"gemma3",
          hparams,
          tensors,
          decoder,
          {"attention.sliding_window", "attention.sliding_window_pattern", "rope.local.freq_base",
           "final_logit_softcapping"}};
}

}  // namespace minfer::archs
