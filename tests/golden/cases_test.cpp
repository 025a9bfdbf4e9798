// Models from outside with their right answers (MINFER_CASES, see docs/testing.md): a trained one with its story,
// random ones of each family, mixed and quantized weights. Each suite says so and is skipped where its files are
// absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/feed.h"
#include "golden.h"
#include "sample/sampler.h"

namespace minfer::golden {
namespace {

std::string models_dir() {
  const char* env = std::getenv("MINFER_CASES");
  return (env != nullptr ? std::string(env) : std::string(MINFER_SOURCE_DIR) + "/../shared/cases") + "/models/";
}

nlohmann::json read_json(const std::string& name) {
  std::ifstream in(models_dir() + name);
  return in ? nlohmann::json::parse(in) : nlohmann::json();
}

std::unique_ptr<Model> open_model(const std::string& name) {
  auto model = Model::open(models_dir() + name);
  if (!model.ok()) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  return std::move(*model);
}

bool have(const std::string& name) { return std::filesystem::exists(models_dir() + name); }

#define SKIP_WITHOUT(name) \
  if (!have(name)) GTEST_SKIP() << "no file " << models_dir() << name

double worst_difference(std::span<const float> got, std::span<const double> want) {
  if (got.size() != want.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - want[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

// The bits of ref on every other device, by 2 threads and in pieces of 3.
void expect_same_everywhere(const Model& model, std::span<const int32_t> ids, std::span<const float> want, DType kv) {
  for (const Device& device : devices()) {
    RunSetup setup;
    setup.device = device, setup.kv = kv, setup.n_threads = 2;
    auto runner = make_runner(model, setup);
    ASSERT_NE(runner, nullptr);
    EXPECT_EQ(first_difference(all_logits(*runner, ids, 3), want, model.hparams().n_vocab), "") << device.name();
  }
}

// --- stories260K: trained, 8 query heads over 4 KV heads, SentencePiece vocabulary
// --------------------------------------
TEST(Stories260K, GreedyTextAndLogits) {
  SKIP_WITHOUT("stories260K.gguf");
  const auto expected = read_json("stories260K.expected.json");
  const auto model = open_model("stories260K.gguf");
  ASSERT_NE(model, nullptr);
  ASSERT_NE(model->tokenizer(), nullptr);
  EXPECT_EQ(model->tokenizer()->bos(), expected.at("bos").get<int32_t>());
  EXPECT_EQ(model->tokenizer()->eos(), expected.at("eos").get<int32_t>());
  const std::vector<Device> all = devices();
  ASSERT_GE(all.size(), 2u);
  for (const Device& device : {all[0], all[1]}) {  // ref and the best of cpu
    RunSetup setup;
    setup.device = device, setup.n_ctx = 512;
    auto runner = make_runner(*model, setup);
    ASSERT_NE(runner, nullptr);
    for (const auto& c : expected.at("cases")) {
      const std::string prompt = c.at("prompt");
      const auto ids = model->tokenizer()->encode(prompt);
      ASSERT_TRUE(ids.ok()) << ids.error().message;
      EXPECT_EQ(*ids, c.at("prompt_ids").get<std::vector<int32_t>>()) << prompt;

      const auto seq = runner->open_sequence();
      ASSERT_TRUE(seq.ok()) << seq.error().message;
      auto first = feed(*runner, *seq, *ids);
      ASSERT_TRUE(first.ok()) << first.error().message;
      double log_sum = 0;
      for (float x : *first) log_sum += std::exp(static_cast<double>(x));
      log_sum = std::log(log_sum);
      for (const auto& row : c.at("first_logits_top10")) {  // [id, logit, log probability], written with 6 decimals
        const float logit = (*first)[row[0].get<size_t>()];
        EXPECT_NEAR(logit, row[1].get<double>(), 1e-4) << "id " << row[0];
        EXPECT_NEAR(logit - log_sum, row[2].get<double>(), 1e-4) << "id " << row[0];
      }

      // The margins of the file (0.004 and more) are far above rounding: all ids must be equal.
      std::vector<int32_t> greedy, whole = *ids;
      for (const auto want = c.at("greedy_ids").get<std::vector<int32_t>>(); greedy.size() < want.size();) {
        const auto id = argmax(*first);
        ASSERT_TRUE(id.ok()) << id.error().message;
        greedy.push_back(*id);
        whole.push_back(*id);
        ASSERT_EQ(*id, want[greedy.size() - 1]) << device.name() << ", prompt '" << prompt << "'";
        first = feed(*runner, *seq, {&greedy.back(), 1});
        ASSERT_TRUE(first.ok()) << first.error().message;
      }
      runner->close_sequence(*seq);
      const auto text = model->tokenizer()->decode(whole);
      ASSERT_TRUE(text.ok()) << text.error().message;
      EXPECT_EQ(*text, prompt + c.at("text").get<std::string>());
    }
  }
}

TEST(Stories260K, SameBitsEverywhere) {
  SKIP_WITHOUT("stories260K.gguf");
  const auto expected = read_json("stories260K.expected.json");
  const auto model = open_model("stories260K.gguf");
  ASSERT_NE(model, nullptr);
  const auto ids = expected.at("cases")[1].at("greedy_ids").get<std::vector<int32_t>>();
  for (DType kv : {DType::kF32, DType::kF16}) {
    RunSetup setup;
    setup.kv = kv;
    auto ref = make_runner(*model, setup);
    ASSERT_NE(ref, nullptr);
    expect_same_everywhere(*model, ids, all_logits(*ref, ids, 0), kv);
  }
}

// --- random models, logits by transformers in float32
// ------------------------------------------------------------------
class Tiny : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, Tiny, ::testing::Values("llama", "mixtral", "qwen2", "qwen3", "gemma"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(Tiny, Logits) {
  const std::string name = std::string("tiny-") + GetParam();
  SKIP_WITHOUT(name + ".gguf");
  const auto expected = read_json(name + ".expected.json");
  const auto model = open_model(name + ".gguf");
  ASSERT_NE(model, nullptr);
  auto ref = make_runner(*model, {});
  ASSERT_NE(ref, nullptr);
  for (size_t s = 0; s < expected.at("sequences").size(); ++s) {
    const auto ids = expected["sequences"][s].get<std::vector<int32_t>>();
    std::vector<double> want;
    for (const auto& row : expected.at("logits")[s]) {
      for (double x : row) want.push_back(x);
    }
    const std::vector<float> got = all_logits(*ref, ids, 0);
    EXPECT_LE(worst_difference(got, want), 1e-4) << "sequence " << s;
    expect_same_everywhere(*model, ids, got, DType::kF32);
  }
}

// --- F32, F16, BF16, Q8_0 and Q4_K in one file, with and without biases
// -------------------------------------------------
class MixedQuant : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, MixedQuant, ::testing::Values("tiny", "tiny_bias"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(MixedQuant, LogitsOfThePrompt) {
  SKIP_WITHOUT("mixed-quant/expected.json");
  const auto expected = read_json("mixed-quant/expected.json");
  const std::string file = std::string(GetParam()) + ".gguf";
  const auto model = open_model("mixed-quant/" + file);
  ASSERT_NE(model, nullptr);
  auto ref = make_runner(*model, {});
  ASSERT_NE(ref, nullptr);
  for (const auto& c : expected.at("cases").at(file)) {
    const auto ids = c.at("prompt_ids").get<std::vector<int32_t>>();
    const std::vector<float> got = all_logits(*ref, ids, 0);
    const auto n_vocab = static_cast<size_t>(model->hparams().n_vocab);
    ASSERT_EQ(got.size(), ids.size() * n_vocab);
    const auto want = c.at("first_logits").get<std::vector<double>>();
    // The listed logits know no quantized activations: their rounding (1/254 of a block's maximum) is the difference.
    EXPECT_LE(worst_difference(std::span(got).last(n_vocab), want), 1e-3);
    expect_same_everywhere(*model, ids, got, DType::kF32);
  }
}

// --- one model in F32 and F16, another in Q8_0; without scores in their vocabularies
// --------------------------------------
std::unique_ptr<Model> open_without_scores(const std::string& name) {
  auto model = Model::open(models_dir() + name);
  if (!model.ok()) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  return std::move(*model);
}

std::vector<float> some_logits(const Model& model) {
  auto ref = make_runner(model, {});
  if (ref == nullptr) return {};
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < model.hparams().n_ctx_train; ++i) ids.push_back(i * 5 % model.hparams().n_vocab);
  std::vector<float> got = all_logits(*ref, ids, 0);
  expect_same_everywhere(model, ids, got, DType::kF32);
  return got;
}

TEST(KQuantFolder, F16IsCloseToF32) {
  SKIP_WITHOUT("kquant/tiny_llama_f16.gguf");
  const auto f32 = open_without_scores("kquant/tiny_llama_f32.gguf"),
             f16 = open_without_scores("kquant/tiny_llama_f16.gguf");
  ASSERT_TRUE(f32 != nullptr && f16 != nullptr);
  const std::vector<float> a = some_logits(*f32), b = some_logits(*f16);
  float logit_max = 0;
  for (float x : a) logit_max = std::max(logit_max, std::abs(x));
  // Weights rounded by up to 2^-11: as the tolerance of logits_test.cpp, for sums of 12 (n_ff) and two layers.
  const double limit = 4 * 0x1p-11 * std::sqrt(12.0) * 2 * logit_max;
  EXPECT_LE(worst_difference(b, std::vector<double>(a.begin(), a.end())), limit);
}

TEST(KQuantFolder, Q8RunsAlikeEverywhere) {
  SKIP_WITHOUT("kquant/tiny_llama_q8.gguf");
  const auto model = open_without_scores("kquant/tiny_llama_q8.gguf");
  ASSERT_NE(model, nullptr);
  for (float x : some_logits(*model)) ASSERT_TRUE(std::isfinite(x));
}

// A file of blocks only, of no family: refused by name, not by accident.
TEST(KQuantFolder, AFileWithoutAModelIsRefused) {
  SKIP_WITHOUT("kquant/tiny_kquant.gguf");
  const auto model = Model::open(models_dir() + "kquant/tiny_kquant.gguf");
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("kquanttest"), std::string::npos) << model.error().message;
}

}  // namespace
}  // namespace minfer::golden
