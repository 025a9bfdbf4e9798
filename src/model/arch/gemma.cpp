// gemma: Gemma 1. Embeddings scaled by sqrt(n_embd), GeLU (tanh) gate, NeoX rotary pairs; GGUF stores norm weights with
// the family's "+ 1" already added.
// Source: Gemma Team 2024.
#include <cmath>

#include "model/arch/archs.h"

namespace minfer::archs {
namespace {

Status hparams(const gguf::Metadata& m, HParams& hp) {
  hp.rope_style = RopeStyle::kNeox;
  hp.embd_scale = std::sqrt(static_cast<float>(hp.n_embd));
  hp.act = Act::kGeluTanh;
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

Arch gemma() { return {"gemma", hparams, tensors, decoder}; }

}  // namespace minfer::archs
