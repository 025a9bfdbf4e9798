// qwen2: Qwen2 and Qwen2.5. Biases on q, k and v, NeoX rotary pairs.
// Source: Yang et al. 2024 (Qwen2).
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
    mlp_tensors(t, hp, l, layer);
  }
}

}  // namespace

Arch qwen2() { return {"qwen2", hparams, tensors, decoder}; }

}  // namespace minfer::archs
