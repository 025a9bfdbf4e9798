// Arch: one model family = hyperparameters, tensors, layer graph, in one file of model/arch/ and one line of
// arch_list.inc. Nothing else in minfer asks which family a model is.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "model/hparams.h"
#include "model/weights.h"

namespace minfer {

// Indices into the weight table, -1 where a family has no such tensor. [sizes] as the graph sees them.
struct LayerWeights {
  int32_t attn_norm = -1;                      // [n_embd]
  int32_t wq = -1, wk = -1, wv = -1, wo = -1;  // [n_head*D, n_embd], [n_head_kv*D, n_embd] x2, [n_embd, n_head*D]
  int32_t bq = -1, bk = -1, bv = -1, bo = -1;
  int32_t q_norm = -1, k_norm = -1;                      // [D]
  int32_t attn_post_norm = -1;                           // [n_embd], on the attention's output (Gemma 2, 3)
  int32_t ffn_norm = -1;                                 // [n_embd]
  int32_t gate = -1, up = -1, down = -1;                 // [n_ff, n_embd] x2, [n_embd, n_ff]
  int32_t router = -1;                                   // [n_expert, n_embd]
  int32_t gate_exps = -1, up_exps = -1, down_exps = -1;  // [n_expert, n_ff, n_embd] x2, [n_expert, n_embd, n_ff]
  int32_t ffn_post_norm = -1;                            // [n_embd]
};

struct ModelWeights {
  int32_t token_embd = -1;      // [n_vocab, n_embd], kEmbed
  int32_t output_norm = -1;     // [n_embd]
  int32_t output = -1;          // [n_vocab, n_embd], kMatMul (token_embd again when tied)
  int32_t inv_freq = -1;        // f64 [n_rot/2]
  int32_t inv_freq_local = -1;  // of sliding-window layers, when different
  float rope_mscale = 1.0f;
  std::vector<LayerWeights> layers;
};

// Everything a layer graph is built from.
struct GraphContext {
  Builder& b;
  const HParams& hp;
  const ModelWeights& w;
  const std::vector<TensorView>& views;  // of the weight table: dtypes and shapes
  const std::vector<Weight>& weights;    // names
  GraphParams p;
  int64_t n_slots;  // rows of the KV regions

  ValueId weight(int32_t index) const;  // kNoValue for -1
  bool prunes() const { return p.n_outputs < p.n_tokens; }
};

struct Arch {
  const char* name;
  Status (*hparams)(const gguf::Metadata& metadata, HParams& hp);  // after the common keys
  void (*tensors)(WeightTable& table, const HParams& hp, ModelWeights& w);
  ValueId (*graph)(GraphContext& g);         // logits [n_outputs, n_vocab], kNoValue without outputs
  std::vector<const char*> graph_keys = {};  // keys of refuse_other_graphs() that hparams reads
};

std::span<const Arch> all_archs();
// Errors: an unknown name, listing the known ones.
Result<const Arch*> find_arch(const std::string& name);

}  // namespace minfer
