// Reading and checking hyperparameters.
#include "model/hparams.h"

#include <cmath>

namespace minfer {
namespace {

constexpr int32_t kMaxLayers = 4096;     // some 30 times the deepest model published
constexpr int32_t kMaxWidth = 1 << 24;   // features; keeps every product of two widths inside int64
constexpr int32_t kMaxHeadDim = 1024;    // kernels keep a head's accumulators on the stack
constexpr int32_t kMaxExperts = 4096;

Status in_range(const gguf::Metadata& m, const std::string& key, int64_t v, int64_t lo, int64_t hi) {
  if (v >= lo && v <= hi) return {};
  return make_error(ErrorCode::kCorrupt, "[model] {}: key '{}': found {}, expected {} to {}", m.source(), key, v, lo, hi);
}

// One number that must hold for all layers; a per-layer array is accepted when its elements agree.
Result<int32_t> same_for_all_layers(const gguf::Metadata& m, const std::string& key, int32_t n_layer, int32_t fallback) {
  if (!m.has(key)) return fallback;
  const auto values = MINFER_TRY(m.per_layer<int32_t>(key, static_cast<size_t>(n_layer)));
  for (int32_t v : values) {
    if (v != values[0]) {
      return make_error(ErrorCode::kUnsupported, "[model] {}: key '{}': found different values per layer ({} and {}), expected one for all layers",
                        m.source(), key, values[0], v);
    }
  }
  return values[0];
}

Status read_rope(const gguf::Metadata& m, const std::string& p, HParams& hp) {
  hp.n_rot = MINFER_TRY(m.get_or<int32_t>(p + "rope.dimension_count", hp.head_dim));
  if (hp.n_rot < 2 || hp.n_rot > hp.head_dim || hp.n_rot % 2 != 0) {
    return make_error(ErrorCode::kCorrupt, "[model] {}: key '{}rope.dimension_count': found {}, expected an even number from 2 to the head size {}",
                      m.source(), p, hp.n_rot, hp.head_dim);
  }
  hp.rope_base = MINFER_TRY(m.get_or<double>(p + "rope.freq_base", 10000.0));
  if (!(hp.rope_base > 1.0) || !std::isfinite(hp.rope_base)) {
    return make_error(ErrorCode::kCorrupt, "[model] {}: key '{}rope.freq_base': found {}, expected a finite number above 1", m.source(), p, hp.rope_base);
  }
  const auto type = MINFER_TRY(m.get_or<std::string>(p + "rope.scaling.type", "none"));
  hp.rope_factor = MINFER_TRY(m.get_or<double>(p + "rope.scaling.factor", 1.0));
  if (type == "linear" || (type == "none" && m.has(p + "rope.scale_linear"))) {
    hp.rope_scaling = RopeScaling::kLinear;
    if (m.has(p + "rope.scale_linear")) hp.rope_factor = MINFER_TRY(m.get<double>(p + "rope.scale_linear"));
  } else if (type == "yarn") {
    hp.rope_scaling = RopeScaling::kYarn;
    hp.rope_ctx_orig = MINFER_TRY(m.get_or<int32_t>(p + "rope.scaling.original_context_length", hp.n_ctx_train));
    hp.yarn_beta_fast = MINFER_TRY(m.get_or<double>(p + "rope.scaling.yarn_beta_fast", 32.0));
    hp.yarn_beta_slow = MINFER_TRY(m.get_or<double>(p + "rope.scaling.yarn_beta_slow", 1.0));
    hp.yarn_attn_factor = MINFER_TRY(m.get_or<double>(p + "rope.scaling.attn_factor", 1.0));
    if (hp.rope_ctx_orig < 1) {
      return make_error(ErrorCode::kCorrupt, "[model] {}: key '{}rope.scaling.original_context_length': found {}, expected 1 or more", m.source(), p,
                        hp.rope_ctx_orig);
    }
  } else if (type != "none") {
    return make_error(ErrorCode::kUnsupported, "[model] {}: key '{}rope.scaling.type': found '{}', expected none, linear or yarn", m.source(), p, type);
  }
  if (!(hp.rope_factor > 0) || !std::isfinite(hp.rope_factor)) {
    return make_error(ErrorCode::kCorrupt, "[model] {}: key '{}rope.scaling.factor': found {}, expected a finite number above 0", m.source(), p, hp.rope_factor);
  }
  return {};
}

}  // namespace

Status read_common_hparams(const gguf::Metadata& m, HParams& hp) {
  const std::string p = hp.arch + ".";
  hp.n_layer = MINFER_TRY(m.get<int32_t>(p + "block_count"));
  MINFER_TRY(in_range(m, p + "block_count", hp.n_layer, 1, kMaxLayers));
  hp.n_embd = MINFER_TRY(m.get<int32_t>(p + "embedding_length"));
  MINFER_TRY(in_range(m, p + "embedding_length", hp.n_embd, 1, kMaxWidth));
  hp.n_ctx_train = MINFER_TRY(m.get<int32_t>(p + "context_length"));
  MINFER_TRY(in_range(m, p + "context_length", hp.n_ctx_train, 1, INT32_MAX));
  hp.n_ff = MINFER_TRY(same_for_all_layers(m, p + "feed_forward_length", hp.n_layer, 0));
  MINFER_TRY(in_range(m, p + "feed_forward_length", hp.n_ff, 1, kMaxWidth));

  hp.n_head = MINFER_TRY(same_for_all_layers(m, p + "attention.head_count", hp.n_layer, 0));
  MINFER_TRY(in_range(m, p + "attention.head_count", hp.n_head, 1, kMaxWidth));
  hp.n_head_kv = MINFER_TRY(same_for_all_layers(m, p + "attention.head_count_kv", hp.n_layer, hp.n_head));
  MINFER_TRY(in_range(m, p + "attention.head_count_kv", hp.n_head_kv, 1, hp.n_head));
  if (hp.n_head % hp.n_head_kv != 0) {
    return make_error(ErrorCode::kCorrupt, "[model] {}: key '{}attention.head_count_kv': found {}, expected a divisor of head_count {}", m.source(), p,
                      hp.n_head_kv, hp.n_head);
  }
  if (m.has(p + "attention.key_length")) {
    hp.head_dim = MINFER_TRY(m.get<int32_t>(p + "attention.key_length"));
  } else {
    if (hp.n_embd % hp.n_head != 0) {
      return make_error(ErrorCode::kCorrupt, "[model] {}: '{}embedding_length' {} is no multiple of '{}attention.head_count' {}, and there is no '{}attention.key_length'",
                        m.source(), p, hp.n_embd, p, hp.n_head, p);
    }
    hp.head_dim = hp.n_embd / hp.n_head;
  }
  MINFER_TRY(in_range(m, p + "attention.key_length", hp.head_dim, 1, kMaxHeadDim));
  const auto value_length = MINFER_TRY(m.get_or<int32_t>(p + "attention.value_length", hp.head_dim));
  if (value_length != hp.head_dim) {
    return make_error(ErrorCode::kUnsupported, "[model] {}: key '{}attention.value_length': found {}, expected the key length {}", m.source(), p, value_length, hp.head_dim);
  }
  hp.rms_eps = MINFER_TRY(m.get_or<float>(p + "attention.layer_norm_rms_epsilon", 1e-5f));
  if (!(hp.rms_eps >= 0.0f) || !std::isfinite(hp.rms_eps)) {
    return make_error(ErrorCode::kCorrupt, "[model] {}: key '{}attention.layer_norm_rms_epsilon': found {}, expected a finite number, 0 or more", m.source(), p, hp.rms_eps);
  }
  hp.attn_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hp.head_dim)));

  hp.n_expert = MINFER_TRY(m.get_or<int32_t>(p + "expert_count", 0));
  MINFER_TRY(in_range(m, p + "expert_count", hp.n_expert, 0, kMaxExperts));
  hp.n_expert_used = MINFER_TRY(m.get_or<int32_t>(p + "expert_used_count", 0));
  MINFER_TRY(in_range(m, p + "expert_used_count", hp.n_expert_used, hp.n_expert > 0 ? 1 : 0, hp.n_expert));
  return read_rope(m, p, hp);
}

Status check_hparams(const HParams& hp) {
  if (hp.n_layer < 1 || hp.n_embd < 1 || hp.n_head < 1 || hp.n_head_kv < 1 || hp.head_dim < 1 || hp.n_ff < 1 || hp.n_vocab < 1 ||
      hp.n_head % hp.n_head_kv != 0 || hp.n_rot % 2 != 0 || hp.n_rot > hp.head_dim) {
    return make_error(ErrorCode::kCorrupt, "[model] architecture '{}': sizes do not fit each other", hp.arch);
  }
  return {};
}

int64_t kv_bytes_per_token(const HParams& hp, DType type_k, DType type_v) {
  const int64_t heads = static_cast<int64_t>(hp.n_layer) * hp.n_head_kv;
  return heads * (dtype_row_bytes(type_k, hp.head_dim) + dtype_row_bytes(type_v, hp.head_dim));
}

}  // namespace minfer
