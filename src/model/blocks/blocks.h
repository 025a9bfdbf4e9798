// Shared pieces of decoder graphs. They emit primitives only; the passes fuse them.
// Shapes: x [n_tokens, n_embd]; after the last layer's attention only the rows whose logits are wanted are left.
#pragma once

#include "model/arch.h"

namespace minfer {

// --- tensors -----------------------------------------------------------------------------------------------------
void embedding_tensors(WeightTable& t, const HParams& hp, ModelWeights& w);  // token_embd, output_norm, output, rope
void attention_tensors(WeightTable& t, const HParams& hp, int32_t layer,
                       LayerWeights& w);  // norm, q, k, v, o; biases if present
void mlp_tensors(WeightTable& t, const HParams& hp, int32_t layer, LayerWeights& w);  // norm, gate, up, down
void moe_tensors(WeightTable& t, const HParams& hp, int32_t layer, LayerWeights& w);  // norm, router, experts

// --- graph -------------------------------------------------------------------------------------------------------
ValueId embed(GraphContext& g);
ValueId norm(GraphContext& g, ValueId x, int32_t weight, const char* name, int32_t group = 0);
// x + attention(norm(x)): in the last layer of a pruned graph the result has n_outputs rows (kNoValue when that is 0).
ValueId attention_block(GraphContext& g, int32_t layer, ValueId x);
// x + mlp(norm(x)), or the mixture of experts when the layer has a router.
ValueId ffn_block(GraphContext& g, int32_t layer, ValueId x);
// [rows, n_vocab], or with GraphParams::hidden what they would be made of [rows, n_embd].
ValueId logits(GraphContext& g, ValueId x);
// The whole usual decoder: embed, layers of attention_block and ffn_block, logits.
ValueId decoder(GraphContext& g);

}  // namespace minfer
