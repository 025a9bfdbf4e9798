#include "engine/guess_depth.h"

#include <gtest/gtest.h>

namespace minfer {
namespace {

TEST(GuessDepth, FollowsHitsAndCosts) {
  const auto free = [](int32_t) { return 10.0; };                // bandwidth-bound: more rows cost nothing
  const auto linear = [](int32_t k) { return 10.0 * (1 + k); };  // compute-bound
  const auto some = [](int32_t k) { return 11.0 + k; };
  GuessDepth d;
  EXPECT_EQ(d.best(8, 1, free).depth, 8);
  EXPECT_EQ(d.best(0, 1, free).depth, 0);
  EXPECT_EQ(d.best(8, 1, linear).depth, 0);
  EXPECT_NEAR(d.best(8, 1, linear).rate, 0.1, 1e-9);
  const GuessDepth::Choice at_first = d.best(8, 1, some);
  EXPECT_GT(at_first.depth, 0);
  EXPECT_LT(at_first.depth, 8);
  EXPECT_GT(at_first.rate, 1 / 11.0);
  for (int i = 0; i < 50; ++i) d.learn(4, 4);
  EXPECT_GT(d.hit(), 0.95);
  EXPECT_EQ(d.best(8, 1, some).depth, 8);
  EXPECT_GT(d.best(8, 1, some).expected, 7);
  EXPECT_LT(d.best(8, 100, some).depth, 8);  // a hundred other streams wait for each guess
  for (int i = 0; i < 50; ++i) d.learn(4, 0);
  EXPECT_LT(d.hit(), 0.05);
  EXPECT_EQ(d.best(8, 1, some).depth, 0);
}

TEST(GuessDepth, ProbesAreRareAndRarer) {
  GuessDepth d;
  const auto until_probe = [&] {
    int n = 1;
    while (!d.probe()) ++n;
    return n;
  };
  EXPECT_EQ(until_probe(), 32);
  EXPECT_EQ(until_probe(), 64);
  for (int i = 0; i < 6; ++i) until_probe();
  EXPECT_EQ(until_probe(), 512);
  d.learn(1, 1);
  EXPECT_EQ(until_probe(), 32);
}

}  // namespace
}  // namespace minfer
