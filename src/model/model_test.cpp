// Opening models: recipes that spoil one hyperparameter or tensor of a good little model, each with what the error must
// say; the same over a folder of malformed files from outside, where it is present.
#include "model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "gguf/writer.h"
#include "plan/plan.h"

namespace minfer {
namespace {

struct Tensor {
  gguf::TensorSpec spec;
  std::vector<std::byte> data;
};

// A model as fields that a recipe may change.
struct Parts {
  gguf::MetadataBuilder meta;
  std::vector<Tensor> tensors;
  std::string arch;

  void add(const std::string& name, Shape shape, DType type = DType::kF32) {
    Tensor t{{name, type, shape}, {}};
    t.data.resize(t.spec.bytes());
    if (type == DType::kF32) {
      for (size_t i = 0; i < t.data.size() / 4; ++i) {
        const float x = 0.05f * static_cast<float>(static_cast<int>((i * 7 + name.size() * 3) % 23) - 11) +
                        (shape.rank == 1 ? 1.0f : 0.0f);
        std::memcpy(&t.data[i * 4], &x, sizeof x);
      }
    }
    tensors.push_back(std::move(t));
  }
  Tensor& tensor(const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.spec.name == name; });
  }
  void reshape(const std::string& name, Shape shape, DType type = DType::kF32) {
    tensors.erase(tensors.begin() + (&tensor(name) - tensors.data()));
    add(name, shape, type);
  }
  template <typename T>
  void set(const std::string& key, T value) {
    meta.set(arch + "." + key, value);
  }
  Result<std::unique_ptr<Model>> open() const {
    std::vector<gguf::TensorSpec> specs;
    std::vector<std::span<const std::byte>> data;
    for (const Tensor& t : tensors) specs.push_back(t.spec), data.push_back(t.data);
    const auto bytes = MINFER_TRY(gguf::encode(meta, specs, data));
    return Model::open(MINFER_TRY(gguf::File::from_bytes(bytes, "made.gguf")));
  }
};

constexpr int64_t kEmbd = 8, kHeads = 2, kHeadsKv = 1, kHead = 4, kFf = 12, kVocab = 9, kExperts = 3;

Parts good(const std::string& arch, bool experts = false) {
  Parts p;
  p.arch = arch;
  p.meta.set("general.architecture", arch);
  p.set("block_count", uint32_t{1});
  p.set("context_length", uint32_t{64});
  p.set("embedding_length", static_cast<uint32_t>(kEmbd));
  p.set("feed_forward_length", static_cast<uint32_t>(kFf));
  p.set("attention.head_count", static_cast<uint32_t>(kHeads));
  p.set("attention.head_count_kv", static_cast<uint32_t>(kHeadsKv));
  p.set("attention.layer_norm_rms_epsilon", 1e-5f);
  const std::vector<std::string> tokens{"<unk>",   "<s>",     "</s>",    "\u2581a",
                                        "\u2581b", "\u2581c", "\u2581d", "\u2581e"};  // one less than rows
  p.meta.set("tokenizer.ggml.model", "llama");
  p.meta.set_strings("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  const std::vector<float> scores(tokens.size(), 0.0f);
  p.meta.set_array<float>("tokenizer.ggml.scores", scores);
  const std::vector<int32_t> types{2, 3, 3, 1, 1, 1, 1, 1};
  p.meta.set_array<int32_t>("tokenizer.ggml.token_type", types);
  p.add("token_embd.weight", {kVocab, kEmbd});
  p.add("output_norm.weight", {kEmbd});
  p.add("output.weight", {kVocab, kEmbd});
  p.add("blk.0.attn_norm.weight", {kEmbd});
  p.add("blk.0.attn_q.weight", {kHeads * kHead, kEmbd});
  p.add("blk.0.attn_k.weight", {kHeadsKv * kHead, kEmbd});
  p.add("blk.0.attn_v.weight", {kHeadsKv * kHead, kEmbd});
  p.add("blk.0.attn_output.weight", {kEmbd, kHeads * kHead});
  p.add("blk.0.ffn_norm.weight", {kEmbd});
  if (arch == "qwen3" || arch == "gemma3") {
    p.add("blk.0.attn_q_norm.weight", {kHead});
    p.add("blk.0.attn_k_norm.weight", {kHead});
  }
  if (arch == "gemma3") {
    p.add("blk.0.post_attention_norm.weight", {kEmbd});
    p.add("blk.0.post_ffw_norm.weight", {kEmbd});
  }
  if (experts) {
    p.set("expert_count", static_cast<uint32_t>(kExperts));
    p.set("expert_used_count", uint32_t{2});
    p.add("blk.0.ffn_gate_inp.weight", {kExperts, kEmbd});
    p.add("blk.0.ffn_gate_exps.weight", {kExperts, kFf, kEmbd});
    p.add("blk.0.ffn_up_exps.weight", {kExperts, kFf, kEmbd});
    p.add("blk.0.ffn_down_exps.weight", {kExperts, kEmbd, kFf});
  } else {
    p.add("blk.0.ffn_gate.weight", {kFf, kEmbd});
    p.add("blk.0.ffn_up.weight", {kFf, kEmbd});
    p.add("blk.0.ffn_down.weight", {kEmbd, kFf});
  }
  return p;
}

// One step of three tokens on the scalar reference, without an engine: plain slots, one page after another.
Result<std::vector<float>> one_step(const Model& model) {
  const HParams& hp = model.hparams();
  const auto backend = MINFER_TRY(make_backend({"ref", ""}));
  const auto pool = MINFER_TRY(ThreadPool::create(1));
  const LoadedWeights weights = MINFER_TRY(load_weights(model.weights(), model.source(), *backend, *pool, {}));
  GraphParams params;
  params.n_tokens = 3, params.n_outputs = 1, params.page_size = 32, params.pages_per_seq = 1, params.n_kv = 256;
  params.type_k = params.type_v = DType::kF32;
  Externals externals;
  externals.weights = weights.views;
  std::vector<Buffer> regions;
  for (int32_t r = 0; r < 2 * hp.n_layer; ++r) {
    const int64_t bytes = int64_t{32} * hp.kv_width() * 4;
    regions.push_back(MINFER_TRY(Buffer::allocate(static_cast<size_t>(bytes))));
    TensorView v;
    v.dtype = DType::kF32;
    v.shape = Shape{32, hp.kv_width()};
    v.layout = r % 2 == 0 ? Layout::kKvK : Layout::kKvV;
    v.row_bytes = hp.kv_width() * 4;
    v.data = regions.back().data();
    externals.kv.push_back(v);
  }
  Graph graph = MINFER_TRY(model.build(params, weights.views, 32));
  const auto plan = MINFER_TRY(Plan::make(std::move(graph), *backend, externals, std::make_shared<Arena>(), {}));
  for (size_t i = 0; i < 3; ++i) {
    plan->input(InputKind::kTokens)[i] = static_cast<int32_t>(i) % hp.n_vocab;
    plan->input(InputKind::kPositions)[i] = plan->input(InputKind::kSlots)[i] = static_cast<int32_t>(i);
  }
  plan->input(InputKind::kOutRows)[0] = plan->input(InputKind::kOutPositions)[0] = 2;
  MINFER_TRY(plan->run(*pool, {}));
  const TensorView out = plan->output(0);
  return std::vector<float>(out.as<float>(), out.as<float>() + out.shape.count());
}

struct Recipe {
  const char* id;
  const char* arch;  // "llama+moe": with experts
  std::function<void(Parts&)> spoil;
  std::vector<std::string> says;  // all of them in the error; none: the model must open and run
};

void PrintTo(const Recipe& r, std::ostream* out) { *out << r.id; }

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

template <typename T>
std::function<void(Parts&)> set(const char* key, T value) {
  return [=](Parts& p) { p.set(key, value); };
}

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = {
      // nothing spoiled
      {"good_llama", "llama", [](Parts&) {}, {}},
      {"good_experts", "llama+moe", [](Parts&) {}, {}},
      {"good_qwen2", "qwen2", [](Parts&) {}, {}},
      {"good_qwen3", "qwen3", [](Parts&) {}, {}},
      {"good_gemma", "gemma", [](Parts&) {}, {}},
      {"good_gemma3", "gemma3", [](Parts&) {}, {}},
      {"tied", "llama", [](Parts& p) { p.tensors.erase(p.tensors.begin() + 2); }, {}},
      {"heads_kv_absent_means_heads",
       "llama",
       [](Parts& p) { p.meta.remove("llama.attention.head_count_kv"); },
       {"attn_k.weight", "[4, 8]", "[8, 8]"}},
      {"f16_norms", "llama", [](Parts& p) { p.reshape("blk.0.attn_norm.weight", {kEmbd}, DType::kF16); }, {}},
      {"half_rotary", "llama", set("rope.dimension_count", uint32_t{2}), {}},
      // family
      {"arch_unknown",
       "llama",
       [](Parts& p) { p.meta.set("general.architecture", "llamb"); },
       {"'llamb'", "known", "llama", "qwen3"}},
      {"arch_absent", "llama", [](Parts& p) { p.meta.remove("general.architecture"); }, {"general.architecture"}},
      {"arch_number",
       "llama",
       [](Parts& p) { p.meta.set("general.architecture", uint32_t{1}); },
       {"general.architecture", "UINT32"}},
      // counts
      {"layers_absent", "llama", [](Parts& p) { p.meta.remove("llama.block_count"); }, {"llama.block_count"}},
      {"layers_0", "llama", set("block_count", uint32_t{0}), {"llama.block_count", "found 0"}},
      {"layers_2", "llama", set("block_count", uint32_t{2}), {"blk.1.attn_norm.weight", "missing"}},
      {"layers_max", "llama", set("block_count", ~0u), {"llama.block_count"}},
      {"layers_float", "llama", set("block_count", 1.0f), {"llama.block_count", "FLOAT32"}},
      {"layers_negative", "llama", set("block_count", int32_t{-1}), {"llama.block_count", "-1"}},
      {"ctx_0", "llama", set("context_length", uint32_t{0}), {"llama.context_length", "found 0"}},
      {"ctx_huge", "llama", set("context_length", uint64_t{1} << 40), {"llama.context_length"}},
      {"embd_0", "llama", set("embedding_length", uint32_t{0}), {"llama.embedding_length", "found 0"}},
      {"embd_other", "llama", set("embedding_length", uint32_t{16}), {"token_embd.weight", "[9, 8]", "[9, 16]"}},
      {"embd_huge", "llama", set("embedding_length", uint32_t{1} << 31), {"llama.embedding_length"}},
      {"ff_0", "llama", set("feed_forward_length", uint32_t{0}), {"llama.feed_forward_length", "found 0"}},
      {"ff_other", "llama", set("feed_forward_length", uint32_t{13}), {"blk.0.ffn_gate.weight", "[12, 8]", "[13, 8]"}},
      // heads
      {"heads_0", "llama", set("attention.head_count", uint32_t{0}), {"llama.attention.head_count", "found 0"}},
      {"heads_no_divisor",
       "llama",
       [](Parts& p) { p.set("attention.head_count", uint32_t{3}); },
       {"llama.embedding_length", "8", "multiple", "3"}},
      {"heads_kv_0",
       "llama",
       set("attention.head_count_kv", uint32_t{0}),
       {"llama.attention.head_count_kv", "found 0"}},
      {"heads_kv_more",
       "llama",
       set("attention.head_count_kv", uint32_t{4}),
       {"llama.attention.head_count_kv", "found 4"}},
      {"heads_kv_no_divisor",
       "llama",
       [](Parts& p) {
         p.set("attention.head_count", uint32_t{4});
         p.set("attention.head_count_kv", uint32_t{3});
       },
       {"llama.attention.head_count_kv", "found 3", "divisor", "4"}},
      {"heads_per_layer_differ",
       "llama",
       [](Parts& p) {
         const std::vector<uint32_t> kv{1, 2};
         p.set("block_count", uint32_t{2});
         p.meta.set_array<uint32_t>("llama.attention.head_count_kv", kv);
       },
       {"llama.attention.head_count_kv", "different values per layer"}},
      {"heads_per_layer_short",
       "llama",
       [](Parts& p) {
         const std::vector<uint32_t> kv{1, 1, 1};
         p.meta.set_array<uint32_t>("llama.attention.head_count_kv", kv);
       },
       {"llama.attention.head_count_kv", "3"}},
      {"key_length_0", "llama", set("attention.key_length", uint32_t{0}), {"llama.attention.key_length", "found 0"}},
      {"key_length_other",
       "llama",
       [](Parts& p) { p.set("attention.key_length", uint32_t{6}), p.set("attention.value_length", uint32_t{6}); },
       {"blk.0.attn_q.weight", "[8, 8]", "[12, 8]"}},
      {"key_length_huge", "llama", set("attention.key_length", uint32_t{1} << 20), {"llama.attention.key_length"}},
      {"value_length_other",
       "llama",
       set("attention.value_length", uint32_t{6}),
       {"llama.attention.value_length", "found 6"}},
      {"heads_times_size_huge",
       "llama",
       [](Parts& p) {
         for (const char* key : {"embedding_length", "attention.head_count", "attention.head_count_kv"})
           p.set(key, uint32_t{1} << 24);
         p.set("attention.key_length", uint32_t{1024});
       },
       {"llama.attention.head_count", "16777216"}},
      // norms and rotary positions
      {"eps_nan", "llama", set("attention.layer_norm_rms_epsilon", kNan), {"layer_norm_rms_epsilon", "nan"}},
      {"eps_negative", "llama", set("attention.layer_norm_rms_epsilon", -1.0f), {"layer_norm_rms_epsilon", "-1"}},
      {"rope_dim_odd", "llama", set("rope.dimension_count", uint32_t{3}), {"llama.rope.dimension_count", "found 3"}},
      {"rope_dim_more", "llama", set("rope.dimension_count", uint32_t{6}), {"llama.rope.dimension_count", "found 6"}},
      {"rope_dim_0", "llama", set("rope.dimension_count", uint32_t{0}), {"llama.rope.dimension_count", "found 0"}},
      {"rope_base_0", "llama", set("rope.freq_base", 0.0f), {"llama.rope.freq_base", "found 0"}},
      {"rope_base_nan", "llama", set("rope.freq_base", kNan), {"llama.rope.freq_base", "nan"}},
      {"rope_base_inf", "llama", set("rope.freq_base", kInf), {"llama.rope.freq_base", "inf"}},
      {"rope_scaling_unknown",
       "llama",
       [](Parts& p) { p.set("rope.scaling.type", "longrope"); },
       {"llama.rope.scaling.type", "longrope"}},
      {"rope_factor_0",
       "llama",
       [](Parts& p) { p.set("rope.scaling.type", "linear"), p.set("rope.scaling.factor", 0.0f); },
       {"rope.scaling.factor", "found 0"}},
      {"rope_factor_nan",
       "llama",
       [](Parts& p) { p.set("rope.scaling.type", "yarn"), p.set("rope.scaling.factor", kNan); },
       {"rope.scaling.factor", "nan"}},
      {"yarn_ctx_0",
       "llama",
       [](Parts& p) { p.set("rope.scaling.type", "yarn"), p.set("rope.scaling.original_context_length", uint32_t{0}); },
       {"original_context_length", "found 0"}},
      {"yarn_beta_nan",
       "llama",
       [](Parts& p) { p.set("rope.scaling.type", "yarn"), p.set("rope.scaling.yarn_beta_fast", kNan); },
       {"yarn_beta_fast", "nan"}},
      {"yarn_beta_0",
       "llama",
       [](Parts& p) { p.set("rope.scaling.type", "yarn"), p.set("rope.scaling.yarn_beta_slow", 0.0f); },
       {"yarn_beta_slow", "found 0"}},
      {"yarn_attn_inf",
       "llama",
       [](Parts& p) { p.set("rope.scaling.type", "yarn"), p.set("rope.scaling.attn_factor", kInf); },
       {"attn_factor", "inf"}},
      {"rope_freqs_short",
       "llama",
       [](Parts& p) { p.add("rope_freqs.weight", {1}); },
       {"rope_freqs.weight", "[1]", "[2]"}},
      {"rope_freqs_0",
       "llama",
       [](Parts& p) {
         p.add("rope_freqs.weight", {2});
         std::fill(p.tensors.back().data.begin(), p.tensors.back().data.end(), std::byte{0});
       },
       {"rope_freqs.weight", "element 0", "found 0"}},
      {"rope_freqs_f16",
       "llama",
       [](Parts& p) { p.add("rope_freqs.weight", {2}, DType::kF16); },
       {"rope_freqs.weight", "f16"}},
      // windows, experts and what a family would not compute
      {"window_negative", "llama", set("attention.sliding_window", int32_t{-5}), {"sliding_window", "-5"}},
      {"window_huge", "llama", set("attention.sliding_window", ~0u), {"sliding_window"}},
      {"pattern_negative",
       "gemma3",
       set("attention.sliding_window_pattern", int32_t{-1}),
       {"sliding_window_pattern", "-1"}},
      {"local_base_nan", "gemma3", set("rope.local.freq_base", kNan), {"rope.local.freq_base", "nan"}},
      {"softcap_nan", "gemma3", set("final_logit_softcapping", kNan), {"final_logit_softcapping", "nan"}},
      {"softcap_negative", "gemma3", set("final_logit_softcapping", -1.0f), {"final_logit_softcapping", "-1"}},
      {"qwen_window", "qwen2", set("attention.sliding_window", uint32_t{16}), {"qwen2.attention.sliding_window"}},
      {"llama_softcap", "llama", set("attn_logit_softcapping", 50.0f), {"llama.attn_logit_softcapping"}},
      {"llama_logit_scale", "llama", set("logit_scale", 0.5f), {"llama.logit_scale"}},
      {"llama_not_causal", "llama", set("attention.causal", false), {"llama.attention.causal"}},
      {"experts_used_more", "llama+moe", set("expert_used_count", uint32_t{9}), {"llama.expert_used_count", "found 9"}},
      {"experts_used_0", "llama+moe", set("expert_used_count", uint32_t{0}), {"llama.expert_used_count", "found 0"}},
      {"experts_used_without", "llama", set("expert_used_count", uint32_t{2}), {"llama.expert_used_count", "found 2"}},
      {"experts_other",
       "llama+moe",
       set("expert_count", uint32_t{4}),
       {"blk.0.ffn_gate_inp.weight", "[3, 8]", "[4, 8]"}},
      {"experts_huge", "llama+moe", set("expert_count", ~0u), {"llama.expert_count"}},
      // vocabulary and tensors
      {"vocab_more_than_rows",
       "llama",
       [](Parts& p) {
         p.reshape("token_embd.weight", {7, kEmbd});
       },
       {"8 tokens", "7 rows"}},
      {"table_is_vector", "llama", [](Parts& p) { p.reshape("token_embd.weight", {kEmbd}); }, {"token_embd.weight"}},
      {"table_absent", "llama", [](Parts& p) { p.tensors.erase(p.tensors.begin()); }, {"token_embd.weight"}},
      {"output_other",
       "llama",
       [](Parts& p) {
         p.reshape("output.weight", {8, kEmbd});
       },
       {"output.weight", "[8, 8]", "[9, 8]"}},
      {"norm_absent",
       "llama",
       [](Parts& p) { p.tensors.erase(p.tensors.begin() + 1); },
       {"output_norm.weight", "missing"}},
      {"norm_matrix",
       "llama",
       [](Parts& p) {
         p.reshape("output_norm.weight", {2, 4});
       },
       {"output_norm.weight", "[2, 4]", "[8]"}},
      {"weight_i32",
       "llama",
       [](Parts& p) {
         p.reshape("blk.0.attn_q.weight", {8, 8}, DType::kI32);
       },
       {"blk.0.attn_q.weight", "i32"}},
      {"bias_short", "llama", [](Parts& p) { p.add("blk.0.attn_q.bias", {4}); }, {"blk.0.attn_q.bias", "[4]", "[8]"}},
      {"tensor_unknown",
       "llama",
       [](Parts& p) { p.add("blk.0.attn_sinks.weight", {2}); },
       {"blk.0.attn_sinks.weight", "llama"}},
      {"layer_unknown",
       "llama",
       [](Parts& p) { p.add("blk.1.attn_norm.weight", {kEmbd}); },
       {"blk.1.attn_norm.weight"}},
      {"experts_2d",
       "llama+moe",
       [](Parts& p) {
         p.reshape("blk.0.ffn_up_exps.weight", {kExperts * kFf, kEmbd});
       },
       {"blk.0.ffn_up_exps.weight", "[36, 8]"}},
      {"q_norm_absent",
       "qwen3",
       [](Parts& p) { p.tensors.erase(p.tensors.begin() + 9); },
       {"blk.0.attn_q_norm.weight", "missing"}},
      {"old_rot_embd", "llama", [](Parts& p) { p.add("blk.0.attn_rot_embd", {2}); }, {}},
      // numbers that mean nothing: no error of the file's form, so they run
      {"weights_nan",
       "llama",
       [](Parts& p) {
         for (Tensor& t : p.tensors) std::fill(t.data.begin(), t.data.end(), std::byte{0xff});
       },
       {}},
  };
  return all;
}

class Spoiled : public ::testing::TestWithParam<Recipe> {};
INSTANTIATE_TEST_SUITE_P(Models, Spoiled, ::testing::ValuesIn(recipes()),
                         [](const auto& p) { return std::string(p.param.id); });

TEST_P(Spoiled, EndsAsItShould) {
  const Recipe& r = GetParam();
  const std::string arch = r.arch;
  Parts parts = good(arch.substr(0, arch.find('+')), arch.ends_with("+moe"));
  r.spoil(parts);
  const auto model = parts.open();
  if (!r.says.empty()) {
    ASSERT_FALSE(model.ok());
    for (const std::string& part : r.says)
      EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
    return;
  }
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto logits = one_step(**model);
  ASSERT_TRUE(logits.ok()) << logits.error().message;
  EXPECT_EQ(logits->size(), static_cast<size_t>(kVocab));
  if (std::string(r.id) != "weights_nan") {
    for (float x : *logits) EXPECT_TRUE(std::isfinite(x));
  }
}

// --- malformed files from outside
// ----------------------------------------------------------------------------------------
TEST(MalformedFiles, EndAsTheirManifestSays) {
  const char* env = std::getenv("MINFER_CASES");
  const std::string dir =
      (env != nullptr ? std::string(env) : std::string(MINFER_SOURCE_DIR) + "/../shared/cases") + "/gguf-malformed/";
  std::ifstream in(dir + "manifest.json");
  if (!in) GTEST_SKIP() << "no cases at " << dir;
  const auto base = Model::open(dir + "_valid_base.gguf");
  ASSERT_TRUE(base.ok()) << base.error().message;
  for (const auto& c : nlohmann::json::parse(in)) {
    const std::string file = c.at("file"), expected = c.at("expected");
    const auto model = Model::open(dir + file);
    if (!model.ok()) {
      EXPECT_NE(expected, "accept_no_crash") << file << ": " << model.error().message;
      EXPECT_FALSE(model.error().message.empty()) << file;
      continue;
    }
    EXPECT_NE(expected, "reject") << file << " was accepted";
    const auto logits = one_step(**model);
    EXPECT_TRUE(logits.ok()) << file << ": " << logits.error().message;
  }
}

// --- random models
// -------------------------------------------------------------------------------------------------------
TEST(RandomModels, NamesAndTypesThatThereAreNot) {
  const auto name = Model::random("llama-9", DType::kF16, 1);
  ASSERT_FALSE(name.ok());
  EXPECT_NE(name.error().message.find("smollm2-135m"), std::string::npos) << name.error().message;
  const auto type = Model::random("smollm2-135m", DType::kI32, 1);
  ASSERT_FALSE(type.ok());
  EXPECT_NE(type.error().message.find("i32"), std::string::npos) << type.error().message;
  const auto width = Model::random("smollm2-135m", DType::kQ4_K, 1);  // rows of 576 are no multiple of 256
  ASSERT_FALSE(width.ok());
  EXPECT_NE(width.error().message.find("576"), std::string::npos) << width.error().message;
  EXPECT_NE(width.error().message.find("types that fit: f32, f16, bf16, q4_0"), std::string::npos)
      << width.error().message;
}

TEST(RandomModels, SizeIsKnownBeforeTheyAreMade) {
  const auto plain = Model::random_bytes("smollm2-135m", DType::kQ8_0, false);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  // 134,479,872 values in matrices, the tied table once, at 34 bytes per 32; 61 norms of 576 f32.
  EXPECT_EQ(*plain, int64_t{134479872} / 32 * 34 + 61 * 576 * 4);
  const auto packed = Model::random_bytes("smollm2-135m", DType::kQ8_0, true);
  EXPECT_EQ(*packed, *plain + int64_t{134479872} / 32 * 34);
  EXPECT_FALSE(Model::random_bytes("smollm2-135m", DType::kQ4_K, true).ok());
}

// --- KV sizes
// ------------------------------------------------------------------------------------------------------------
TEST(KvBytes, WorkedExamples) {
  HParams hp;
  hp.n_layer = 24, hp.n_head_kv = 2, hp.head_dim = 64;
  EXPECT_EQ(kv_bytes_per_token(hp, DType::kF32, DType::kF32), 24 * 1024);
  hp.n_layer = 36, hp.n_head_kv = 8, hp.head_dim = 128;
  EXPECT_EQ(kv_bytes_per_token(hp, DType::kF32, DType::kF32), 288 * 1024);
  EXPECT_EQ(kv_bytes_per_token(hp, DType::kF16, DType::kQ8_0), 36 * 8 * (256 + 4 * 34));
}

}  // namespace
}  // namespace minfer
