// llama: Llama 1-3, Mistral, SmolLM2, TinyLlama, Mixtral. Rotary pairs are interleaved, as GGUF stores their q and k.
// Source: Touvron et al. 2023; Jiang et al. 2024 (Mixtral).
#include "model/arch/archs.h"

namespace minfer::archs {
namespace {

Status hparams(const gguf::Metadata& m, HParams& hp) {
  hp.rope_style = RopeStyle::kInterleaved;
  hp.window = MINFER_TRY(m.get_or<int32_t>("llama.attention.sliding_window", 0));
  return {};
}

void tensors(WeightTable& t, const HParams& hp, ModelWeights& w) {
  embedding_tensors(t, hp, w);
  for (int32_t l = 0; l < hp.n_layer; ++l) {
    LayerWeights& layer = w.layers.emplace_back();
    attention_tensors(t, hp, l, layer);
    hp.n_expert > 0 ? moe_tensors(t, hp, l, layer) : mlp_tensors(t, hp, l, layer);
  }
}

}  // namespace

Arch llama() { return {"llama", hparams, tensors, decoder, {"attention.sliding_window"}}; }

}  // namespace minfer::archs
