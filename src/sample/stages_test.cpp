// The stages one by one on small examples, DRY against a plain search, breakers, what check_sampling() refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "sample/dry.h"
#include "sample/dry_breakers.h"
#include "sample/filters.h"
#include "sample/penalties.h"
#include "sample/temperature.h"

namespace minfer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Candidates candidates(const std::vector<float>& probabilities) {
  std::vector<Candidate> c;
  for (size_t i = 0; i < probabilities.size(); ++i)
    c.push_back({static_cast<int32_t>(i), std::log(probabilities[i]), 0});
  return Candidates(std::move(c));
}

std::vector<int32_t> ids(const Candidates& c) {
  std::vector<int32_t> out;
  for (const auto& x : c.items()) out.push_back(x.id);
  return out;
}

TEST(Candidates, HeadIsWhatASortGives) {
  std::mt19937 random(3);
  for (size_t n : {1u, 2u, 255u, 1000u, 5000u}) {
    std::vector<float> row(n);
    for (float& x : row) x = static_cast<float>(random() % 50);  // many ties
    Candidates sorted;
    sorted.assign(row, 0);
    sorted.sort();
    for (size_t k : {size_t{1}, size_t{7}, size_t{300}, n / 3 + 1, n, n + 5}) {
      Candidates by_row, by_head;
      by_row.assign(row, k);
      by_head.assign(row, 0);
      by_head.keep_head(k);
      auto want = ids(sorted);
      want.resize(std::min(k, n));
      ASSERT_EQ(ids(by_row), want);
      ASSERT_EQ(ids(by_head), want);
    }
  }
}

TEST(Filters, TopPKeepsTheSmallestSetThatReachesP) {
  auto c = candidates({0.3f, 0.5f, 0.15f, 0.05f});
  keep_top_p(c, 0.75f, 0);
  EXPECT_THAT(ids(c), ElementsAre(1, 0));
}

TEST(Filters, MinPIsRelativeToTheLargest) {
  auto c = candidates({0.05f, 0.3f, 0.15f, 0.5f});
  keep_min_p(c, 0.25f, 0);
  EXPECT_THAT(ids(c), ElementsAre(1, 2, 3));
  keep_min_p(c, 1, 2);
  EXPECT_THAT(ids(c), ElementsAre(3, 1));
}

TEST(Filters, TypicalDropsTheTooLikely) {
  // Entropy of (0.7, 0.1, 0.1, 0.1) is 0.94 nat; the surprise of 0.7 is 0.36, of 0.1 it is 2.30: the first is nearest.
  auto c = candidates({0.7f, 0.1f, 0.1f, 0.1f});
  keep_typical(c, 0.6f, 0);
  EXPECT_THAT(ids(c), ElementsAre(0));
}

TEST(Filters, XtcLeavesTheLeastLikelyOfTheTopChoices) {
  auto c = candidates({0.3f, 0.5f, 0.15f, 0.05f});
  drop_top_choices(c, 0.1f, 0);
  EXPECT_THAT(ids(c), ElementsAre(2, 3));
  auto kept = candidates({0.3f, 0.5f, 0.15f, 0.05f});
  drop_top_choices(kept, 0.1f, 3);
  EXPECT_EQ(kept.size(), 4u);
}

TEST(Temperature, DynamicMeetsItsEnds) {
  auto even = candidates({0.25f, 0.25f, 0.25f, 0.25f});
  Candidates sure({{0, 0, 0}, {1, -200, 0}});
  apply_dynamic_temperature(even, 1, 0.5f, 2);
  EXPECT_EQ(even.size(), 4u);
  apply_dynamic_temperature(sure, 0.5f, 1, 1);  // no entropy: temperature 0
  EXPECT_THAT(ids(sure), ElementsAre(0));
}

TEST(Penalties, RepeatFrequencyPresence) {
  SamplingParams p;
  p.repeat_penalty = 2;
  p.frequency_penalty = 0.5f;
  p.presence_penalty = 0.25f;
  p.repeat_last_n = 3;
  std::vector<float> l = {4, -4, 1, 1};
  const std::vector<int32_t> history = {3, 0, 1, 0};  // the first lies outside the window
  Penalties().apply(l, history, p);
  EXPECT_THAT(l, ElementsAre(4 / 2.0f - 1.25f, -8 - 0.75f, 1, 1));
  std::vector<float> far = {-3e38f, 3e38f, -INFINITY};
  p.repeat_penalty = 100, p.repeat_last_n = -1;
  Penalties().apply(far, std::vector<int32_t>{0, 2, -7, 99}, {p});
  EXPECT_THAT(far, ElementsAre(std::numeric_limits<float>::lowest(), 3e38f, -INFINITY));
}

TEST(Dry, AsItsExampleHasIt) {
  // a b c c b c y a b c: with c the repetition "a b c" goes on, with y "b c".
  SamplingParams p;
  p.dry_multiplier = 1, p.dry_base = 2, p.dry_allowed_length = 2, p.dry_penalty_last_n = -1;
  const std::vector<int32_t> history = {0, 1, 2, 2, 1, 2, 8, 0, 1, 2};
  Dry dry(p);
  const auto got = dry.penalties(history, p);
  EXPECT_THAT(std::vector(got.begin(), got.end()), ElementsAre(std::pair(2, 2.0), std::pair(8, 1.0)));
}

// For each id the longest end of the window that stands elsewhere in it and goes on with that id.
std::map<int32_t, int32_t> searched(std::span<const int32_t> window, size_t most, int32_t allowed) {
  std::map<int32_t, int32_t> out;
  for (size_t at = 1; at < window.size(); ++at) {  // window[at] would be the next id
    size_t n = 0;
    while (n < at && n < most && window[at - 1 - n] == window[window.size() - 1 - n]) ++n;
    if (static_cast<int32_t>(n) < allowed) continue;
    auto& longest = out.try_emplace(window[at], 0).first->second;
    longest = std::max(longest, static_cast<int32_t>(n));
  }
  return out;
}

TEST(Dry, FindsWhatAPlainSearchFinds) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    SamplingParams p;
    p.dry_multiplier = 1, p.dry_base = 2, p.dry_penalty_last_n = -1;
    p.dry_allowed_length = static_cast<int32_t>(random() % 4);
    std::vector<int32_t> history(random() % 30);
    for (auto& id : history) id = static_cast<int32_t>(random() % 3);
    for (size_t i = random() % 3; i > 0; --i) {
      p.dry_breakers.emplace_back();
      for (size_t n = 1 + random() % 3; n > 0; --n) p.dry_breakers.back().push_back(static_cast<int32_t>(random() % 3));
    }
    size_t most = history.size();  // ids after the last breaker
    for (const auto& b : p.dry_breakers) {
      const auto at = std::find_end(history.begin(), history.end(), b.begin(), b.end());
      if (at != history.end()) most = std::min(most, static_cast<size_t>(history.end() - at) - b.size());
    }
    std::map<int32_t, double> want, got;
    for (const auto& [id, n] : searched(history, most, p.dry_allowed_length)) {
      if (std::count(p.dry_breakers.begin(), p.dry_breakers.end(), std::vector<int32_t>{id}) == 0)
        want[id] = std::exp2(n - p.dry_allowed_length);
    }
    if (most < static_cast<size_t>(p.dry_allowed_length)) want.clear();
    Dry dry(p);
    for (const auto& [id, penalty] : dry.penalties(history, p)) got[id] = std::round(penalty * 1e6) / 1e6;
    ASSERT_EQ(got, want) << testing::PrintToString(history) << testing::PrintToString(p.dry_breakers)
                         << p.dry_allowed_length;
  }
}

TEST(Dry, CostIsLinear) {
  // One id 200,000 times, every breaker a long run of it: any search that starts over would not end.
  SamplingParams p;
  p.dry_multiplier = 1, p.dry_penalty_last_n = -1;
  for (size_t n = 2; n <= 64; ++n) {
    p.dry_breakers.emplace_back(n, 5);
    p.dry_breakers.back().back() = 6;
  }
  const std::vector<int32_t> history(200'000, 5);
  Dry dry(p);
  const auto got = dry.penalties(history, p);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].first, 5);
  std::vector<float> row(6, 1.0f);
  dry.apply(row, history, p);
  EXPECT_EQ(row[5], std::numeric_limits<float>::lowest());
}

TEST(DryBreakers, InsideAPieceAndAcrossPieces) {
  const std::vector<std::string> pieces = {"a", "\n", ".\n", "x<", "<", "br", ">", "/br>", "<br>!", ""};
  BreakerVocab vocab{static_cast<int32_t>(pieces.size()),
                     [&](int32_t id) { return std::string_view(pieces[static_cast<size_t>(id)]); },
                     [](std::string_view text) -> Result<std::vector<int32_t>> {
                       if (text == "br>") return std::vector<int32_t>{5, 6};
                       return make_error(ErrorCode::kInternal, "asked for '{}'", text);
                     }};
  const std::vector<std::string> strings = {"\n", "<br>"};
  const auto got = dry_breakers(strings, vocab);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_THAT(*got,
              ElementsAre(ElementsAre(1), ElementsAre(2), ElementsAre(3, 5, 6), ElementsAre(4, 5, 6), ElementsAre(8)));
  EXPECT_FALSE(dry_breakers(std::vector<std::string>{""}, vocab).ok());
  EXPECT_FALSE(dry_breakers(std::vector<std::string>{std::string(41, 'x')}, vocab).ok());
  // Every piece ends with the beginning of the text: the sum is bounded, and so is the memory on the way to it.
  vocab.n_vocab = static_cast<int32_t>(kBreakerIdsTotal / 50);
  vocab.piece = [](int32_t) { return std::string_view("ab"); };
  vocab.encode = [](std::string_view) -> Result<std::vector<int32_t>> { return std::vector<int32_t>(50, 1); };
  const auto many = dry_breakers(std::vector<std::string>{"bc"}, vocab);
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().code, ErrorCode::kResourceExhausted);
}

TEST(Order, NamesAreReadAndWritten) {
  std::string names;
  for (SamplerStage stage : SamplingParams{}.samplers)
    names.append(names.empty() ? "" : ";").append(sampler_name(stage));
  EXPECT_EQ(names, "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature;adaptive_p");
  EXPECT_EQ(*parse_samplers(names), SamplingParams{}.samplers);
  EXPECT_TRUE(parse_samplers("")->empty());
  EXPECT_THAT(*parse_samplers("temp;typical_p"), ElementsAre(SamplerStage::kTemperature, SamplerStage::kTypicalP));
  for (const char* bad : {";", "top_k;", ";top_k", "top-k", "top_k;;temp", " top_k", "nucleus\n"}) {
    const auto r = parse_samplers(bad);
    ASSERT_FALSE(r.ok()) << bad;
    EXPECT_THAT(r.error().message, HasSubstr("expected names out of penalties, dry"));
  }
  std::string many;
  for (int i = 0; i < 100000; ++i) many += "dry;";
  EXPECT_FALSE(parse_samplers(many).ok());
}

TEST(CheckSampling, EveryFieldHasItsRange) {
  SamplingParams p;
  ASSERT_TRUE(check_sampling(p).ok());
  const auto refuse = [&](auto SamplingParams::*field, auto value, const char* says) {
    SamplingParams q;
    q.*field = value;
    const auto r = check_sampling(q);
    ASSERT_FALSE(r.ok()) << says;
    EXPECT_THAT(r.error().message, HasSubstr(says));
  };
  struct Range {
    const char* name;
    float SamplingParams::*field;
    float lo, hi;
  };
  const Range ranges[] = {
      {"repeat_penalty", &SamplingParams::repeat_penalty, 0.01f, 100},
      {"frequency_penalty", &SamplingParams::frequency_penalty, -100, 100},
      {"presence_penalty", &SamplingParams::presence_penalty, -100, 100},
      {"dry_multiplier", &SamplingParams::dry_multiplier, 0, 100},
      {"dry_base", &SamplingParams::dry_base, 1, 100},
      {"top_n_sigma", &SamplingParams::top_n_sigma, -1, 1000},
      {"typical_p", &SamplingParams::typical_p, 1e-6f, 1},
      {"top_p", &SamplingParams::top_p, 1e-6f, 1},
      {"min_p", &SamplingParams::min_p, 0, 1},
      {"xtc_probability", &SamplingParams::xtc_probability, 0, 1},
      {"xtc_threshold", &SamplingParams::xtc_threshold, 0, 1},
      {"temperature", &SamplingParams::temperature, 0, 100},
      {"dynatemp_range", &SamplingParams::dynatemp_range, 0, 100},
      {"dynatemp_exponent", &SamplingParams::dynatemp_exponent, 0, 100},
      {"adaptive_target", &SamplingParams::adaptive_target, -1, 1},
      {"adaptive_decay", &SamplingParams::adaptive_decay, 0, 0.99f},
      {"mirostat_tau", &SamplingParams::mirostat_tau, 1e-6f, 100},
      {"mirostat_eta", &SamplingParams::mirostat_eta, 0, 1},
  };
  for (const Range& r : ranges) {
    for (float good : {r.lo, r.hi}) {
      SamplingParams q;
      q.*r.field = good;
      EXPECT_TRUE(check_sampling(q).ok()) << r.name << " " << good;
    }
    for (float bad : {r.lo - 0.01f, std::nextafter(r.hi, 1e9f), NAN, INFINITY, -INFINITY})
      refuse(r.field, bad, (std::string("[sample] ") + r.name + ": found ").c_str());
  }
  refuse(&SamplingParams::top_k, -5, "top_k: found -5, expected 0 to 1000000000");
  refuse(&SamplingParams::repeat_last_n, -2, "repeat_last_n");
  refuse(&SamplingParams::dry_penalty_last_n, -2, "dry_penalty_last_n");
  refuse(&SamplingParams::dry_allowed_length, -1, "dry_allowed_length");
  refuse(&SamplingParams::min_keep, -1, "min_keep");
  refuse(&SamplingParams::mirostat, 3, "mirostat");
  using Bias = std::vector<std::pair<int32_t, float>>;
  refuse(&SamplingParams::logit_bias, Bias{{-1, 1.0f}}, "logit_bias");
  refuse(&SamplingParams::logit_bias, Bias{{1, NAN}}, "logit_bias");
  refuse(&SamplingParams::logit_bias, Bias{{1, INFINITY}}, "logit_bias");
  using Breakers = std::vector<std::vector<int32_t>>;
  refuse(&SamplingParams::dry_breakers, Breakers{{1}, {}}, "sequence 2 has 0 ids");
  refuse(&SamplingParams::dry_breakers, Breakers{std::vector<int32_t>(65)}, "has 65 ids");
  refuse(&SamplingParams::dry_breakers, Breakers{{-1}}, "found -1, expected a token id");
  using Order = std::vector<SamplerStage>;
  refuse(&SamplingParams::samplers, Order{SamplerStage::kTopK, SamplerStage::kTopK}, "found 'top_k' twice");
  refuse(&SamplingParams::samplers, Order{SamplerStage::kAdaptiveP, SamplerStage::kXtc},
         "found 'xtc' after 'adaptive_p'");
  refuse(&SamplingParams::samplers, Order{static_cast<SamplerStage>(77)}, "found 77");
  p.mirostat = 2;
  EXPECT_TRUE(check_sampling(p).ok());
  p.xtc_probability = 0.5f;
  EXPECT_THAT(check_sampling(p).error().message, HasSubstr("found 2 together with xtc_probability"));
}

}  // namespace
}  // namespace minfer
