// The whole chain: what a draw depends on, its frequencies, masks, the state, what is refused.
#include "sample/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>
#include <random>
#include <algorithm>
#include <cmath>
#include <random>

#include "sample/philox.h"

namespace minfer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SamplingParams all_off() {
  SamplingParams p;
  p.top_k = 0, p.top_p = 1, p.min_p = 0, p.temperature = 1;
  return p;
}

std::vector<float> waves(size_t n, float scale = 1) {
  std::vector<float> l(n);
  for (size_t i = 0; i < n; ++i) l[i] = scale * std::sin(static_cast<float>(i * i));
  return l;
}

std::vector<int32_t> ids(const std::vector<Candidate>& c) {
  std::vector<int32_t> out;
  for (const auto& x : c) out.push_back(x.id);
  return out;
}

TEST(Philox, PublishedVectors) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  const uint32_t f = 0xffffffffu;
  EXPECT_THAT(philox4x32({f, f, f, f}, {f, f}), ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(Sampler, GreedyTakesTheLowerIdOfATie) {
  SamplingParams p;
  p.temperature = 0;
  const std::vector<float> l = {1, 3, 3, 2};
  Sampler s(p);
  EXPECT_EQ(*s.sample(l, {}, 0), 1);
  EXPECT_THAT(ids(s.distribution()), ElementsAre(1));
  EXPECT_EQ(s.logprob(1), 0);
  EXPECT_EQ(s.logprob(2), -INFINITY);
}

TEST(Sampler, GreedySeesThePenaltiesWhereverTheyStand) {
  SamplingParams p;
  p.temperature = 0, p.presence_penalty = 5;
  const std::vector<float> l = {1, 3, 2};
  const std::vector<int32_t> history = {1};
  EXPECT_EQ(*Sampler(p).sample(l, history, 1), 2);
  p.samplers = {SamplerStage::kTopK, SamplerStage::kPenalties};
  EXPECT_EQ(*Sampler(p).sample(l, history, 1), 2);
  p.samplers = {};  // not listed: no penalties, greedy all the same
  EXPECT_EQ(*Sampler(p).sample(l, history, 1), 1);
}

TEST(Sampler, DependsOnSeedAndPositionOnly) {
  SamplingParams p = all_off();
  p.seed = 42, p.xtc_probability = 0.5f, p.xtc_threshold = 0.01f;
  const auto l = waves(100);
  Sampler a(p), b(p);
  std::vector<int32_t> first, second;
  for (uint64_t i = 0; i < 50; ++i) first.push_back(*a.sample(l, {}, i));
  for (uint64_t i = 50; i-- > 0;) second.insert(second.begin(), *b.sample(l, {}, i));
  EXPECT_EQ(first, second);
  EXPECT_NE(first[0], first[1]);
}

// Stages that do nothing change no draw, whether the candidates are sorted or not.
TEST(Sampler, StagesThatKeepAllChangeNothing) {
  SamplingParams p = all_off(), q = all_off();
  q.top_k = 100'000, q.xtc_probability = 1, q.xtc_threshold = 0.5f, q.top_n_sigma = 1000, q.min_p = 1e-30f;
  const auto l = waves(5000, 3);
  Sampler a(p), b(q);
  for (uint64_t i = 0; i < 300; ++i) ASSERT_EQ(*a.sample(l, {}, i), *b.sample(l, {}, i)) << i;
}

// Pearson's chi-square: sum of (n - expected)^2 / expected.
double chi_square(const std::vector<int>& counts, const std::vector<double>& p, int n) {
  double x = 0;
  for (size_t i = 0; i < p.size(); ++i) x += (counts[i] - n * p[i]) * (counts[i] - n * p[i]) / (n * p[i]);
  return x;
}

TEST(Sampler, FrequenciesFollowTheProbabilities) {
  constexpr int kDraws = 40000, kIds = 50;
  const auto l = waves(kIds, 1.5f);
  for (uint64_t seed : {0u, 1u, 12345u}) {
    SamplingParams p = all_off();
    p.seed = seed;
    Sampler s(p);
    std::vector<int> counts(kIds);
    for (uint64_t i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(*s.sample(l, {}, i))];
    std::vector<double> want(kIds);
    for (const auto& x : s.distribution()) want[static_cast<size_t>(x.id)] = static_cast<double>(x.p);
    // 49 degrees of freedom: above 94.6 in one of 10,000 cases.
    EXPECT_LT(chi_square(counts, want, kDraws), 94.6) << seed;
  }
}

TEST(Sampler, XtcHappensAsOftenAsItShould) {
  SamplingParams p = all_off();
  p.xtc_probability = 0.3f, p.xtc_threshold = 0.2f;
  const std::vector<double> q = {0.45, 0.3, 0.15, 0.1};  // the second is the last above the threshold: the first goes
  std::vector<float> l;
  for (double x : q) l.push_back(static_cast<float>(std::log(x)));
  Sampler s(p);
  constexpr int kDraws = 40000;
  std::vector<int> counts(4);
  for (uint64_t i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(*s.sample(l, {}, i))];
  std::vector<double> want = {0.7 * q[0]};
  for (size_t i = 1; i < 4; ++i) want.push_back(0.7 * q[i] + 0.3 * q[i] / (1 - q[0]));
  EXPECT_LT(chi_square(counts, want, kDraws), 21.1);  // 3 degrees of freedom: above it in one of 10,000 cases
}

TEST(Sampler, MaskForbidsBeforeEverything) {
  SamplingParams p = all_off();
  p.top_k = 3;
  std::vector<float> l(70);
  for (size_t i = 0; i < l.size(); ++i) l[i] = static_cast<float>(i);
  std::vector<uint32_t> mask = {1u << 31, 1u << 0 | 1u << 31, 0};  // 31, 32, 63
  Sampler s(p);
  ASSERT_TRUE(s.sample(l, {}, 0, mask).ok());
  EXPECT_THAT(ids(s.distribution()), ElementsAre(63, 32, 31));
  mask = {0, 0, 0xffffffffu};
  ASSERT_TRUE(s.sample(l, {}, 0, mask).ok());
  EXPECT_THAT(ids(s.distribution()), ElementsAre(69, 68, 67));
  p.temperature = 0;
  mask = {1u << 5, 0, 0};
  EXPECT_EQ(*Sampler(p).sample(l, {}, 0, mask), 5);
  mask = {0, 0, 0};
  auto none = s.sample(l, {}, 0, mask);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("leave no token"));
  mask = {1, 1};
  none = s.sample(l, {}, 0, mask);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("mask of 2 words, expected 3"));
}

// The row is never copied for a mask: it must be as if its forbidden logits were -infinity.
TEST(Sampler, AMaskIsLikeForbiddenLogits) {
  std::mt19937 random(1);
  const auto below = [&](uint32_t n) { return random() % n; };
  for (int round = 0; round < 400; ++round) {
    SamplingParams p = all_off();
    p.seed = random();
    p.temperature = below(4) == 0 ? 0.0f : 0.5f * static_cast<float>(1 + below(3));
    p.top_k = below(2) == 0 ? static_cast<int32_t>(1 + below(60)) : 0;
    if (below(3) == 0) p.top_p = 0.8f;
    if (below(3) == 0) p.min_p = 0.1f;
    if (below(4) == 0) p.typical_p = 0.7f;
    if (below(4) == 0) p.top_n_sigma = 1.5f;
    if (below(3) == 0) p.repeat_penalty = 1.3f, p.presence_penalty = 0.5f;
    if (below(4) == 0) p.dry_multiplier = 1, p.dry_allowed_length = 1;
    if (below(3) == 0) p.logit_bias = {{3, 4.0f}, {40, -INFINITY}};
    if (below(4) == 0) p.samplers = {SamplerStage::kTopK, SamplerStage::kPenalties, SamplerStage::kTemperature};
    if (below(6) == 0) {
      p = all_off();
      p.mirostat = static_cast<int32_t>(1 + below(2));
    }
    ASSERT_TRUE(check_sampling(p).ok()) << check_sampling(p).error().message;
    const size_t n = 41 + below(400);
    auto row = waves(n, 6);
    std::vector<uint32_t> mask(mask_words(n) + below(2));
    for (uint32_t& word : mask) word = below(3) == 0 ? (below(2) == 0 ? 0xffffffffu : 0u) : random() & random();
    mask[0] |= 1u << below(3);
    auto forbidden = row;
    for (size_t i = 0; i < n; ++i) {
      if ((mask[i / 32] >> (i % 32) & 1) != 0) continue;
      forbidden[i] = -INFINITY;
      if (below(20) == 0) row[i] = NAN;  // never looked at
    }
    std::vector<int32_t> history;
    for (int i = 0; i < 30; ++i) history.push_back(static_cast<int32_t>(below(12)));
    Sampler masked(p), plain(p);
    for (uint64_t position = 0; position < 4; ++position) {
      const auto a = masked.sample(row, history, position, mask), b = plain.sample(forbidden, history, position);
      ASSERT_TRUE(a.ok() && b.ok());
      ASSERT_EQ(*a, *b);
      ASSERT_TRUE(masked.state() == plain.state());
      const auto da = masked.distribution(), db = plain.distribution();
      ASSERT_EQ(ids(da), ids(db));
      for (size_t i = 0; i < da.size(); ++i) ASSERT_EQ(da[i].p, db[i].p);
      history.push_back(*a);
    }
  }
}

TEST(TokenMask, AllowsAny) {
  for (size_t n : {1u, 31u, 32u, 33u, 64u, 70u}) {
    std::vector<uint32_t> mask(mask_words(n), 0);
    EXPECT_FALSE(allows_any(mask, n));
    for (size_t i = 0; i < 32 * mask.size(); ++i) {
      mask[i / 32] = 1u << (i % 32);
      EXPECT_EQ(allows_any(mask, n), i < n) << n << ", " << i;
      std::vector<size_t> seen;
      for_each_allowed(mask, n, [&](size_t at) { seen.push_back(at); });
      EXPECT_EQ(seen, i < n ? std::vector<size_t>{i} : std::vector<size_t>{});
      mask[i / 32] = 0;
    }
  }
}

TEST(Sampler, BiasForbidsAndBadLogitsAreErrors) {
  SamplingParams p;
  p.temperature = 0;
  p.logit_bias = {{1, -INFINITY}};
  std::vector<float> l = {1, 5, 2};
  EXPECT_EQ(*Sampler(p).sample(l, {}, 0), 2);
  l[0] = NAN;
  EXPECT_FALSE(Sampler(p).sample(l, {}, 0).ok());
  l[0] = INFINITY;
  EXPECT_FALSE(Sampler(p).sample(l, {}, 0).ok());
  p.repeat_penalty = 1.1f;
  EXPECT_FALSE(Sampler(p).sample(l, std::vector<int32_t>{0}, 0).ok());
  p.logit_bias = {{7, 1.0f}};
  EXPECT_FALSE(Sampler(p).sample(l, {}, 0).ok());
  p.logit_bias = {{0, -INFINITY}, {1, -INFINITY}, {2, -INFINITY}};
  l[0] = 1;
  EXPECT_THAT(Sampler(p).sample(l, {}, 0).error().message, HasSubstr("leave no token"));
  EXPECT_FALSE(Sampler(p).sample({}, {}, 0).ok());
}

// Draws, goes back, draws again: a guess that was wrong leaves no trace.
TEST(Sampler, StateGoesBack) {
  for (int32_t mirostat : {0, 1, 2}) {
    SamplingParams p = all_off();
    p.mirostat = mirostat;
    if (mirostat == 0) p.adaptive_target = 0.3f;
    ASSERT_TRUE(check_sampling(p).ok());
    const auto a = waves(300, 4), b = waves(200, 2);
    Sampler plain(p), guessing(p);
    for (uint64_t i = 0; i < 30; ++i) {
      const SamplerState before = guessing.state();
      ASSERT_TRUE(guessing.sample(b, {}, i).ok());
      ASSERT_TRUE(guessing.sample(b, {}, i + 1).ok());
      EXPECT_FALSE(guessing.state() == before);
      guessing.restore(before);
      ASSERT_EQ(*guessing.sample(a, {}, i), *plain.sample(a, {}, i));
      ASSERT_TRUE(guessing.state() == plain.state());
    }
  }
}

TEST(Sampler, MirostatHoldsTheSurprise) {
  for (int32_t version : {1, 2}) {
    SamplingParams p = all_off();
    p.mirostat = version, p.mirostat_tau = 3;
    std::vector<float> l(2000);
    for (size_t i = 0; i < l.size(); ++i) l[i] = -1.1f * std::log(static_cast<float>(i + 1));
    Sampler s(p);
    double surprise = 0;
    for (uint64_t i = 0; i < 2000; ++i) surprise -= static_cast<double>(s.logprob(*s.sample(l, {}, i))) / std::log(2.0);
    EXPECT_NEAR(surprise / 2000, 3, 0.1) << version;
  }
}

TEST(Sampler, ExtremeRowsDrawSomething) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::vector<std::vector<float>> rows = {
      {kMax, -kMax, 0, kMax},         {-kMax, -kMax},           {0}, {1e-45f, -1e-45f, 0},
      std::vector<float>(1000, 7.0f), {-INFINITY, 3, -INFINITY}};
  std::vector<SamplingParams> all(12, all_off());
  all[0].temperature = 1e-38f;
  all[1].temperature = 100;
  all[2].mirostat = 1;
  all[3].mirostat = 2;
  all[4].adaptive_target = 0.9f;
  all[5].top_n_sigma = 1e-6f;
  all[6].typical_p = 0.01f;
  all[7].xtc_probability = 1, all[7].xtc_threshold = 0;
  all[8].dry_multiplier = 100, all[8].dry_base = 100, all[8].dry_allowed_length = 0;
  all[9].repeat_penalty = 0.01f, all[9].frequency_penalty = -100,
  all[9].samplers = {SamplerStage::kTopK, SamplerStage::kPenalties};
  all[10].dynatemp_range = 100, all[10].dynatemp_exponent = 0, all[10].min_keep = 1'000'000'000, all[10].min_p = 1;
  all[11].temperature = 1e-3f, all[11].dynatemp_range = 1, all[11].top_p = 1e-6f;
  const std::vector<int32_t> history(500, 1);
  for (const auto& p : all) {
    ASSERT_TRUE(check_sampling(p).ok()) << check_sampling(p).error().message;
    for (const auto& row : rows) {
      Sampler s(p);
      for (uint64_t i = 0; i < 20; ++i) {
        const auto id = s.sample(row, history, i);
        ASSERT_TRUE(id.ok()) << id.error().message;
        ASSERT_LT(static_cast<size_t>(*id), row.size());
        EXPECT_GT(s.logprob(*id), -INFINITY);
      }
    }
  }
}

TEST(Argmax, TheFirstOfTheLargestAtAnyLength) {
  std::mt19937 random(5);
  for (size_t n : {size_t{1}, size_t{2}, size_t{15}, size_t{16}, size_t{17}, size_t{1023}, size_t{1024}, size_t{1025},
                   size_t{5000}}) {
    for (int round = 0; round < 50; ++round) {
      std::vector<float> row(n);
      for (float& x : row) x = static_cast<float>(static_cast<int>(random() % 41) - 40);  // many equals, 0 and -0
      for (float& x : row) {
        if (random() % 9 == 0) x = random() % 2 != 0 ? -0.0f : -INFINITY;
      }
      row[random() % n] = 0;  // something can be drawn
      const auto got = argmax(row);
      ASSERT_TRUE(got.ok()) << got.error().message;
      ASSERT_EQ(*got, std::max_element(row.begin(), row.end()) - row.begin()) << n;
      const size_t at = random() % n;
      for (float bad : {NAN, INFINITY}) {
        auto broken = row;
        broken[at] = bad;
        const auto refused = argmax(broken);
        ASSERT_FALSE(refused.ok());
        EXPECT_NE(refused.error().message.find(std::to_string(at)), std::string::npos) << refused.error().message;
      }
    }
  }
  EXPECT_FALSE(argmax({}).ok());
  EXPECT_FALSE(argmax(std::vector<float>(70, -INFINITY)).ok());
}

}  // namespace
}  // namespace minfer
