// qwen3: Qwen3 dense. RMSNorm on every query and key head, head size apart from n_embd / n_head, NeoX rotary pairs.
// Source: Yang et al. 2025 (Qwen3).
#include <fmt/core.h>

#include "model/arch/archs.h"

namespace minfer::archs {
namespace {

Status hparams(const gguf::Metadata& m, HParams& hp) {
  hp.rope_style = RopeStyle::kNeox;
  return {};
}

void tensors(WeightTable& t, const HParams& hp, ModelWeights& w) {
  embedding_tensors(t, hp, w);
  for (int32_t l = 0; l < hp.n_layer; ++l) {
    LayerWeights& layer = w.layers.emplace_back();
    attention_tensors(t, hp, l, layer);
    layer.q_norm = t.need(fmt::format("blk.{}.attn_q_norm.weight", l), {hp.head_dim}, WeightRole::kVector);
    layer.k_norm = t.need(fmt::format("blk.{}.attn_k_norm.weight", l), {hp.head_dim}, WeightRole::kVector);
    mlp_tensors(t, hp, l, layer);
  }
}

}  // namespace

Arch qwen3() { return {"qwen3", hparams, tensors, decoder}; }

}  // namespace minfer::archs
