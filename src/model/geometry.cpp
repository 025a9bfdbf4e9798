// The table of geometries.
#include "model/geometry.h"

#include <cmath>

namespace minfer {
namespace {

struct Row {
  const char* name;
  const char* arch;
  int32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab, n_ctx;
  double rope_base;
  bool tied;
};

constexpr Row kRows[] = {
    {"smollm2-135m", "llama", 30, 576, 1536, 9, 3, 64, 49152, 8192, 1e5, true},
    {"smollm2-1.7b", "llama", 24, 2048, 8192, 32, 32, 64, 49152, 8192, 130000, true},
    {"qwen3-0.6b", "qwen3", 28, 1024, 3072, 16, 8, 128, 151936, 40960, 1e6, true},
    {"qwen3-1.7b", "qwen3", 28, 2048, 6144, 16, 8, 128, 151936, 40960, 1e6, true},
    {"qwen3-4b", "qwen3", 36, 2560, 9728, 32, 8, 128, 151936, 40960, 1e6, true},
    {"qwen3-8b", "qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 40960, 1e6, false},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 4864, 14, 2, 64, 151936, 32768, 1e6, true},
    {"llama-3.2-1b", "llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 5e5, true},
    {"llama-3.2-3b", "llama", 28, 3072, 8192, 24, 8, 128, 128256, 131072, 5e5, true},
    {"llama-3.1-8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072, 5e5, false},
    {"mistral-7b", "llama", 32, 4096, 14336, 32, 8, 128, 32768, 32768, 1e6, false},
};

}  // namespace

std::optional<Geometry> find_geometry(const std::string& name) {
  for (const Row& r : kRows) {
    if (name != r.name) continue;
    Geometry g;
    HParams& hp = g.hp;
    hp.arch = r.arch;
    hp.n_layer = r.n_layer, hp.n_embd = r.n_embd, hp.n_ff = r.n_ff;
    hp.n_head = r.n_head, hp.n_head_kv = r.n_head_kv, hp.head_dim = r.head_dim, hp.n_rot = r.head_dim;
    hp.n_vocab = r.n_vocab, hp.n_ctx_train = r.n_ctx, hp.rope_base = r.rope_base;
    hp.rms_eps = hp.arch == "llama" ? 1e-5f : 1e-6f;
    hp.rope_style = hp.arch == "llama" ? RopeStyle::kInterleaved : RopeStyle::kNeox;
    hp.attn_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hp.head_dim)));
    g.tied = r.tied;
    return g;
  }
  return std::nullopt;
}

std::vector<std::string> geometry_names() {
  std::vector<std::string> names;
  for (const Row& r : kRows) names.push_back(r.name);
  return names;
}

}  // namespace minfer
