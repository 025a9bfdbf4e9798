// HParams: the numbers that decide a model's graph, read from GGUF metadata or from a named geometry.
// Errors:  every value is checked against the others before any tensor is looked at; messages name the key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf/metadata.h"
#include "graph/op.h"

namespace minfer {

enum class RopeScaling : uint8_t { kNone, kLinear, kYarn };

struct HParams {
  std::string arch;  // general.architecture
  int32_t n_layer = 0, n_embd = 0, n_vocab = 0, n_ctx_train = 0;
  int32_t n_head = 0, n_head_kv = 0, head_dim = 0;
  int32_t n_ff = 0;
  float rms_eps = 1e-5f;

  RopeStyle rope_style = RopeStyle::kInterleaved;
  int32_t n_rot = 0;  // rotary values per head, even, <= head_dim
  double rope_base = 10000.0;
  double rope_base_local = 0.0;  // base of the sliding-window layers, 0 = the same
  RopeScaling rope_scaling = RopeScaling::kNone;
  double rope_factor = 1.0;
  int32_t rope_ctx_orig = 0;
  double yarn_beta_fast = 32.0, yarn_beta_slow = 1.0, yarn_attn_factor = 1.0;

  int32_t window = 0;          // sliding window in positions, 0 = none
  int32_t window_pattern = 0;  // every window_pattern-th layer is global; 0 = all layers use the window
  float attn_scale = 0.0f;     // 1/sqrt(head_dim) unless the family says otherwise
  float attn_softcap = 0.0f, final_softcap = 0.0f;
  float embd_scale = 1.0f;
  float residual_scale = 1.0f, logit_scale = 1.0f;
  Act act = Act::kSilu;
  int32_t n_expert = 0, n_expert_used = 0;
  bool norm_topk = true;

  // Does layer l use the sliding window (true) or all positions?
  bool layer_is_local(int32_t l) const { return window > 0 && (window_pattern <= 0 || (l + 1) % window_pattern != 0); }
  int32_t kv_width() const { return n_head_kv * head_dim; }
};

// The keys every decoder family shares ("<arch>.block_count", ...), checked against each other. The family's own
// section (model/arch/<name>.cpp) runs after it.
Status read_common_hparams(const gguf::Metadata& metadata, HParams& hp);

// Refuses keys that would change the graph and that the family's section does not read: soft caps, scales, windows and
// the like of its relatives. `followed`: those it does read, without "<arch>.". A value that changes nothing is let
// pass.
Status refuse_other_graphs(const gguf::Metadata& metadata, const HParams& hp, std::span<const char* const> followed);

// What must hold whatever the family said: called after the family's section.
Status check_hparams(const HParams& hp);

// Bytes of K and V of one position, over all layers.
int64_t kv_bytes_per_token(const HParams& hp, DType type_k, DType type_v);

// Inverse frequencies [n_rot/2] for a rope base, scaling applied; `factors` [n_rot/2] divide them (Llama 3), may be
// null. `mscale` receives YaRN's factor on cosines and sines (1 otherwise).
std::vector<double> rope_inv_freq(const HParams& hp, double base, const float* factors, float* mscale);

}  // namespace minfer
