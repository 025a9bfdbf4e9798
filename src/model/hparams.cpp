// Reading and checking hyperparameters.
#include "model/hparams.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace minfer {
namespace {

constexpr int32_t kMaxLayers = 4096;    // some 30 times the deepest model published
constexpr int32_t kMaxWidth = 1 << 24;  // features; keeps every product of two widths inside int64
constexpr int32_t kMaxHeadDim = 1024;   // kernels keep a head's accumulators on the stack
constexpr int32_t kMaxExperts = 4096;

Status in_range(const gguf::Metadata& m, const std::string& key, int64_t v, int64_t lo, int64_t hi) {
  if (v >= lo && v <= hi) return {};
  return make_error(ErrorCode::kCorrupt, "[model] {}: key '{}': found {}, expected {} to {}", m.source(), key, v, lo,
                    hi);
}

Status positive(const gguf::Metadata& m, const std::string& key, double v) {
  if (v > 0 && std::isfinite(v)) return {};
  return make_error(ErrorCode::kCorrupt, "[model] {}: key '{}': found {}, expected a finite number above 0", m.source(),
                    key, v);
}

// One number that must hold for all layers; a per-layer array is accepted when its elements agree.
Result<int32_t> same_for_all_layers(const gguf::Metadata& m, const std::string& key, int32_t n_layer,
                                    int32_t fallback) {
  if (!m.has(key)) return fallback;
  const auto values = MINFER_TRY(m.per_layer<int32_t>(key, static_cast<size_t>(n_layer)));
  for (int32_t v : values) {
    if (v != values[0]) {
      return make_error(
          ErrorCode::kUnsupported,
          "[model] {}: key '{}': found different values per layer ({} and {}), expected one for all layers", m.source(),
          key, values[0], v);
    }
  }
  return values[0];
}

Status read_rope(const gguf::Metadata& m, const std::string& p, HParams& hp) {
  hp.n_rot = MINFER_TRY(m.get_or<int32_t>(p + "rope.dimension_count", hp.head_dim));
  if (hp.n_rot < 2 || hp.n_rot > hp.head_dim || hp.n_rot % 2 != 0) {
    return make_error(
        ErrorCode::kCorrupt,
        "[model] {}: key '{}rope.dimension_count': found {}, expected an even number from 2 to the head size {}",
        m.source(), p, hp.n_rot, hp.head_dim);
  }
  hp.rope_base = MINFER_TRY(m.get_or<double>(p + "rope.freq_base", 10000.0));
  if (!(hp.rope_base > 1.0) || !std::isfinite(hp.rope_base)) {
    return make_error(ErrorCode::kCorrupt,
                      "[model] {}: key '{}rope.freq_base': found {}, expected a finite number above 1", m.source(), p,
                      hp.rope_base);
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
    MINFER_TRY(positive(m, p + "rope.scaling.yarn_beta_fast", hp.yarn_beta_fast));
    MINFER_TRY(positive(m, p + "rope.scaling.yarn_beta_slow", hp.yarn_beta_slow));
    MINFER_TRY(positive(m, p + "rope.scaling.attn_factor", hp.yarn_attn_factor));
    if (hp.rope_ctx_orig < 1) {
      return make_error(ErrorCode::kCorrupt,
                        "[model] {}: key '{}rope.scaling.original_context_length': found {}, expected 1 or more",
                        m.source(), p, hp.rope_ctx_orig);
    }
  } else if (type != "none") {
    return make_error(ErrorCode::kUnsupported,
                      "[model] {}: key '{}rope.scaling.type': found '{}', expected none, linear or yarn", m.source(), p,
                      type);
  }
  return positive(m, p + "rope.scaling.factor", hp.rope_factor);
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
    return make_error(ErrorCode::kCorrupt,
                      "[model] {}: key '{}attention.head_count_kv': found {}, expected a divisor of head_count {}",
                      m.source(), p, hp.n_head_kv, hp.n_head);
  }
  if (m.has(p + "attention.key_length")) {
    hp.head_dim = MINFER_TRY(m.get<int32_t>(p + "attention.key_length"));
  } else {
    if (hp.n_embd % hp.n_head != 0) {
      return make_error(ErrorCode::kCorrupt,
                        "[model] {}: '{}embedding_length' {} is no multiple of '{}attention.head_count' {}, and there "
                        "is no '{}attention.key_length'",
                        m.source(), p, hp.n_embd, p, hp.n_head, p);
    }
    hp.head_dim = hp.n_embd / hp.n_head;
  }
  MINFER_TRY(in_range(m, p + "attention.key_length", hp.head_dim, 1, kMaxHeadDim));
  if (int64_t{hp.n_head} * hp.head_dim > kMaxWidth) {
    return make_error(
        ErrorCode::kCorrupt,
        "[model] {}: '{}attention.head_count' {} times '{}attention.key_length' {}: expected a product of at most {}",
        m.source(), p, hp.n_head, p, hp.head_dim, kMaxWidth);
  }
  const auto value_length = MINFER_TRY(m.get_or<int32_t>(p + "attention.value_length", hp.head_dim));
  if (value_length != hp.head_dim) {
    return make_error(ErrorCode::kUnsupported,
                      "[model] {}: key '{}attention.value_length': found {}, expected the key length {}", m.source(), p,
                      value_length, hp.head_dim);
  }
  hp.rms_eps = MINFER_TRY(m.get_or<float>(p + "attention.layer_norm_rms_epsilon", 1e-5f));
  if (!(hp.rms_eps >= 0.0f) || !std::isfinite(hp.rms_eps)) {
    return make_error(
        ErrorCode::kCorrupt,
        "[model] {}: key '{}attention.layer_norm_rms_epsilon': found {}, expected a finite number, 0 or more",
        m.source(), p, hp.rms_eps);
  }
  hp.attn_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hp.head_dim)));

  hp.n_expert = MINFER_TRY(m.get_or<int32_t>(p + "expert_count", 0));
  MINFER_TRY(in_range(m, p + "expert_count", hp.n_expert, 0, kMaxExperts));
  hp.n_expert_used = MINFER_TRY(m.get_or<int32_t>(p + "expert_used_count", 0));
  MINFER_TRY(in_range(m, p + "expert_used_count", hp.n_expert_used, hp.n_expert > 0 ? 1 : 0, hp.n_expert));
  return read_rope(m, p, hp);
}

Status refuse_other_graphs(const gguf::Metadata& m, const HParams& hp, std::span<const char* const> followed) {
  struct Key {
    const char* name;
    double neutral;  // besides 0: the value that changes nothing
  };
  static constexpr Key kKeys[] = {
      {"attention.sliding_window", 0},
      {"attention.sliding_window_pattern", 0},
      {"attn_logit_softcapping", 0},
      {"final_logit_softcapping", 0},
      {"logit_scale", 1},
      {"embedding_scale", 1},
      {"residual_scale", 1},
      {"attention.scale", 0},
      {"attention.clamp_kqv", 0},
      {"attention.max_alibi_bias", 0},
      {"attention.causal", 1},
      {"attention.temperature_scale", 0},
      {"attention.temperature_length", 0},
      {"use_parallel_residual", 0},
      {"expert_shared_count", 0},
      {"expert_weights_scale", 1},
      {"expert_gating_func", 1 /* softmax */},
      {"expert_weights_norm", 1},
      {"leading_dense_block_count", 0},
      {"interleave_moe_layer_step", 1},
      {"rope.local.freq_base", 0},
  };
  for (const Key& k : kKeys) {
    const std::string key = hp.arch + "." + k.name;
    const gguf::Value* value = m.find(key);
    if (value == nullptr ||
        std::any_of(followed.begin(), followed.end(), [&](const char* f) { return std::string_view(f) == k.name; }))
      continue;
    double number = NAN;  // arrays and strings stay NaN: not neutral
    if (value->type == gguf::ValueType::kBool) {
      number = MINFER_TRY(m.get<bool>(key)) ? 1 : 0;
    } else if (gguf::value_type_is_integer(value->type)) {
      number = static_cast<double>(MINFER_TRY(m.get<int64_t>(key)));
    } else if (value->type == gguf::ValueType::kF32 || value->type == gguf::ValueType::kF64) {
      number = MINFER_TRY(m.get<double>(key));
    }
    const bool boolean_one = value->type == gguf::ValueType::kBool && k.neutral == 1;  // false means what it says there
    if (number == k.neutral || (number == 0 && !boolean_one)) continue;
    if (key.ends_with("sliding_window") && number >= hp.n_ctx_train) continue;  // never reached
    return make_error(ErrorCode::kUnsupported,
                      "[model] {}: key '{}' is {} ({}), which family '{}' as minfer knows it does not compute; running "
                      "without it would be wrong",
                      m.source(), key, number, value->type_name(), hp.arch);
  }
  return {};
}

Status check_hparams(const HParams& hp) {
  if (hp.n_layer < 1 || hp.n_embd < 1 || hp.n_head < 1 || hp.n_head_kv < 1 || hp.head_dim < 1 || hp.n_ff < 1 ||
      hp.n_vocab < 1 || hp.n_head % hp.n_head_kv != 0 || hp.n_rot % 2 != 0 || hp.n_rot > hp.head_dim) {
    return make_error(ErrorCode::kCorrupt, "[model] architecture '{}': sizes do not fit each other", hp.arch);
  }
  for (const auto& [key, v] : {std::pair{"sliding_window", hp.window}, {"sliding_window_pattern", hp.window_pattern}}) {
    if (v < 0)
      return make_error(ErrorCode::kCorrupt, "[model] key '{}.attention.{}': found {}, expected 0 or more", hp.arch,
                        key, v);
  }
  for (const auto& [key, v] :
       {std::pair{"attn_logit_softcapping", hp.attn_softcap}, {"final_logit_softcapping", hp.final_softcap}}) {
    if (!(v >= 0) || !std::isfinite(v))
      return make_error(ErrorCode::kCorrupt, "[model] key '{}.{}': found {}, expected a finite number, 0 or more",
                        hp.arch, key, v);
  }
  if (hp.rope_base_local != 0 && (!(hp.rope_base_local > 1) || !std::isfinite(hp.rope_base_local))) {
    return make_error(ErrorCode::kCorrupt,
                      "[model] key '{}.rope.local.freq_base': found {}, expected a finite number above 1", hp.arch,
                      hp.rope_base_local);
  }
  return {};
}

int64_t kv_bytes_per_token(const HParams& hp, DType type_k, DType type_v) {
  const int64_t heads = static_cast<int64_t>(hp.n_layer) * hp.n_head_kv;
  return heads * (dtype_row_bytes(type_k, hp.head_dim) + dtype_row_bytes(type_v, hp.head_dim));
}

}  // namespace minfer
