// Every stage and chains of them against what llama.cpp leaves of the same rows (tools/make_sampler_fixtures.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sample/mirostat.h"
#include "sample/sampler.h"

namespace minfer {
namespace {

using nlohmann::json;

json load(const std::string& name) {
  std::ifstream in(std::string(MINFER_SOURCE_DIR) + "/tests/data/sampling/" + name);
  EXPECT_TRUE(in.good()) << name;
  return json::parse(in);
}

std::vector<std::vector<float>> load_rows() {
  std::vector<std::vector<float>> rows;
  const json all = load("rows.json");
  for (const auto& row : all["rows"]) {
    rows.emplace_back();
    for (double x : row) rows.back().push_back(static_cast<float>(x));
  }
  return rows;
}

SamplingParams all_off() {
  SamplingParams p;
  p.top_k = 0, p.top_p = 1, p.min_p = 0, p.temperature = 1;
  return p;
}

SamplingParams read_params(const json& j) {
  SamplingParams p = all_off();
  const auto get = [&](const char* name, auto& field) {
    if (j.contains(name)) field = j.at(name).get<std::decay_t<decltype(field)>>();
  };
  get("repeat_penalty", p.repeat_penalty), get("repeat_last_n", p.repeat_last_n);
  get("frequency_penalty", p.frequency_penalty), get("presence_penalty", p.presence_penalty);
  get("dry_multiplier", p.dry_multiplier), get("dry_base", p.dry_base);
  get("dry_allowed_length", p.dry_allowed_length), get("dry_penalty_last_n", p.dry_penalty_last_n);
  get("dry_breakers", p.dry_breakers), get("top_n_sigma", p.top_n_sigma), get("top_k", p.top_k);
  get("typical_p", p.typical_p), get("top_p", p.top_p), get("min_p", p.min_p), get("min_keep", p.min_keep);
  get("xtc_probability", p.xtc_probability), get("xtc_threshold", p.xtc_threshold);
  get("temperature", p.temperature), get("dynatemp_range", p.dynatemp_range);
  get("dynatemp_exponent", p.dynatemp_exponent);
  return p;
}

void expect_probabilities(const std::vector<Candidate>& got, const json& want) {
  for (const auto& [id, p] : want.items()) {
    const auto at = std::find_if(got.begin(), got.end(), [&](const Candidate& x) { return x.id == std::stoi(id); });
    ASSERT_NE(at, got.end()) << id;
    EXPECT_NEAR(at->p, p.get<double>(), 1e-5) << id;
  }
}

TEST(LlamaCpp, ChainsLeaveTheSameIdsWithTheSameProbabilities) {
  const auto rows = load_rows();
  const json all = load("chains.json");
  ASSERT_GT(all["cases"].size(), 250u);
  for (const auto& c : all["cases"]) {
    SCOPED_TRACE(c.dump());
    SamplingParams p = read_params(c["params"]);
    if (c.contains("samplers")) {
      p.samplers.clear();
      for (const std::string name : c["samplers"]) p.samplers.push_back(parse_samplers(name)->at(0));
    }
    const auto checked = check_sampling(p);
    ASSERT_TRUE(checked.ok()) << checked.error().message;
    const auto history = c.value("history", std::vector<int32_t>{});
    Sampler s(p);
    const auto drawn = s.sample(rows.at(c["row"]), history, history.size());
    ASSERT_TRUE(drawn.ok()) << drawn.error().message;
    auto got = s.distribution();
    ASSERT_EQ(got.size(), c["n"].get<size_t>());
    expect_probabilities(got, c["p"]);
    std::sort(got.begin(), got.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
    int64_t sum = 0, squares = 0;
    double mass = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (c.contains("ids")) {
        ASSERT_EQ(got[i].id, c["ids"][i].get<int32_t>());
      }
      sum += got[i].id, squares += int64_t{got[i].id} * got[i].id;
      mass += static_cast<double>(got[i].p);
    }
    if (c.contains("sums")) {
      EXPECT_EQ(json({sum, squares}), c["sums"]);
    }
    EXPECT_NEAR(mass, 1, 1e-5);
    EXPECT_FLOAT_EQ(
        s.logprob(*drawn),
        std::log(std::find_if(got.begin(), got.end(), [&](const Candidate& x) { return x.id == *drawn; })->p));
  }
}

// The state is carried on with the ids that llama.cpp drew.
TEST(LlamaCpp, MirostatAndAdaptivePStepByStep) {
  const auto rows = load_rows();
  const json all = load("drawn.json");
  ASSERT_EQ(all["cases"].size(), 9u);
  for (const auto& c : all["cases"]) {
    SamplingParams p = all_off();
    const std::string kind = c["kind"];
    const float a = c["a"], b = c["b"];
    if (kind == "adaptive_p") {
      p.adaptive_target = a, p.adaptive_decay = b;
    } else {
      p.mirostat = kind == "mirostat1" ? 1 : 2, p.mirostat_tau = a, p.mirostat_eta = b;
    }
    ASSERT_TRUE(check_sampling(p).ok());
    Sampler s(p), plain(all_off());
    SamplerState state = s.state();
    for (size_t i = 0; i < c["steps"].size(); ++i) {
      const auto& step = c["steps"][i];
      SCOPED_TRACE(kind + " " + c["a"].dump() + " step " + std::to_string(i) + ": " + step.dump());
      const auto& row = rows.at(step["row"]);
      s.restore(state);
      ASSERT_TRUE(s.sample(row, {}, i).ok());
      const auto got = s.distribution();
      ASSERT_EQ(got.size(), step["n"].get<size_t>());
      expect_probabilities(got, step["p"]);
      const int32_t picked = step["picked"];
      const auto p_in = [&](const std::vector<Candidate>& all) {
        return std::find_if(all.begin(), all.end(), [&](const Candidate& x) { return x.id == picked; })->p;
      };
      if (p.mirostat != 0) {
        state.mirostat_mu = mirostat_next(state.mirostat_mu, p_in(got), a, b);
      } else {
        ASSERT_TRUE(plain.sample(row, {}, i).ok());
        state.adaptive = adaptive_next(state.adaptive, p_in(plain.distribution()), b);
      }
    }
  }
}

}  // namespace
}  // namespace minfer
