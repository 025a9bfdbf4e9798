// Philox against the published vectors, each stage on small examples, and the whole chain.
#include "sample/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sample/philox.h"

namespace minfer {
namespace {

std::vector<Candidate> candidates(std::vector<float> probabilities) {
  std::vector<Candidate> c;
  for (size_t i = 0; i < probabilities.size(); ++i)
    c.push_back({static_cast<int32_t>(i), std::log(probabilities[i]), 0});
  return c;
}

std::vector<int32_t> ids(const std::vector<Candidate>& c) {
  std::vector<int32_t> out;
  for (const auto& x : c) out.push_back(x.id);
  return out;
}

TEST(Philox, PublishedVectors) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}),
              testing::ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  const uint32_t f = 0xffffffffu;
  EXPECT_THAT(philox4x32({f, f, f, f}, {f, f}),
              testing::ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
              testing::ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(Filters, TopPKeepsTheSmallestSetThatReachesP) {
  auto c = candidates({0.5f, 0.3f, 0.15f, 0.05f});
  keep_top_p(c, 0.75f);
  EXPECT_THAT(ids(c), testing::ElementsAre(0, 1));
}

TEST(Filters, MinPIsRelativeToTheLargest) {
  auto c = candidates({0.5f, 0.3f, 0.15f, 0.05f});
  keep_min_p(c, 0.25f);
  EXPECT_THAT(ids(c), testing::ElementsAre(0, 1, 2));
}

TEST(Filters, TypicalDropsTheTooLikely) {
  // Entropy of (0.7, 0.1, 0.1, 0.1) is 0.94 nat; the surprise of 0.7 is 0.36, of 0.1 it is 2.30: the first is nearest.
  auto c = candidates({0.7f, 0.1f, 0.1f, 0.1f});
  keep_typical(c, 0.6f);
  EXPECT_THAT(ids(c), testing::ElementsAre(0));
}

TEST(Penalties, RepeatFrequencyPresence) {
  SamplingParams p;
  p.repeat_penalty = 2;
  p.frequency_penalty = 0.5f;
  p.presence_penalty = 0.25f;
  p.repeat_last_n = 3;
  std::vector<float> l = {4, -4, 1, 1};
  const std::vector<int32_t> history = {3, 0, 1, 0};  // the first lies outside the window
  apply_penalties(l, history, p);
  EXPECT_THAT(l, testing::ElementsAre(4 / 2.0f - 1.25f, -8 - 0.75f, 1, 1));
}

TEST(Sampler, GreedyTakesTheLowerIdOfATie) {
  SamplingParams p;
  p.temperature = 0;
  const std::vector<float> l = {1, 3, 3, 2};
  EXPECT_EQ(*Sampler(p).sample(l, {}, 0), 1);
}

TEST(Sampler, DependsOnSeedAndPositionOnly) {
  SamplingParams p;
  p.top_k = 0, p.top_p = 1, p.min_p = 0, p.temperature = 1, p.seed = 42;
  std::vector<float> l(100);
  for (size_t i = 0; i < l.size(); ++i) l[i] = std::sin(static_cast<float>(i));
  Sampler a(p), b(p);
  std::vector<int32_t> first, second;
  for (uint64_t i = 0; i < 50; ++i) first.push_back(*a.sample(l, {}, i));
  for (uint64_t i = 50; i-- > 0;) second.insert(second.begin(), *b.sample(l, {}, i));
  EXPECT_EQ(first, second);
  EXPECT_NE(first[0], first[1]);
}

TEST(Sampler, FrequenciesFollowTheProbabilities) {
  SamplingParams p;
  p.top_k = 0, p.top_p = 1, p.min_p = 0, p.temperature = 1;
  const std::vector<float> l = {std::log(0.6f), std::log(0.3f), std::log(0.1f)};
  Sampler s(p);
  int counts[3] = {};
  for (uint64_t i = 0; i < 20000; ++i) ++counts[*s.sample(l, {}, i)];
  // Five standard deviations of a binomial with n = 20000 are at most 5 * sqrt(20000 / 4) = 354.
  EXPECT_NEAR(counts[0], 12000, 354);
  EXPECT_NEAR(counts[1], 6000, 354);
  EXPECT_NEAR(counts[2], 2000, 354);
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
  p.logit_bias = {{7, 1.0f}};
  EXPECT_FALSE(Sampler(p).sample(l, {}, 0).ok());
}

TEST(Sampler, RangesAreChecked) {
  SamplingParams p;
  EXPECT_TRUE(check_sampling(p).ok());
  p.top_p = 0;
  EXPECT_FALSE(check_sampling(p).ok());
  p = {};
  p.temperature = -1;
  EXPECT_FALSE(check_sampling(p).ok());
  p = {};
  p.temperature = NAN;
  EXPECT_FALSE(check_sampling(p).ok());
  p = {};
  p.top_k = -5;
  EXPECT_FALSE(check_sampling(p).ok());
}

}  // namespace
}  // namespace minfer
