#include "engine/prompt_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace minfer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PromptLookup, WhatFollowedBefore) {
  PromptLookup lookup;
  std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6, 7, 8, 2, 3}, guess;
  lookup.guess(ids, 3, guess);
  EXPECT_THAT(guess, ElementsAre(4, 5, 6));
  ids.push_back(4);
  lookup.guess(ids, 2, guess);
  EXPECT_THAT(guess, ElementsAre(5, 6));
  ids.push_back(9);
  lookup.guess(ids, 2, guess);
  EXPECT_THAT(guess, IsEmpty());
  for (int32_t id : {2, 3}) ids.push_back(id);
  lookup.guess(ids, 3, guess);
  EXPECT_THAT(guess, ElementsAre(4, 9, 2));  // the last time counts
  lookup.guess(ids, 0, guess);
  EXPECT_THAT(guess, IsEmpty());
}

TEST(PromptLookup, ALongerMatchCountsMore) {
  PromptLookup lookup;
  std::vector<int32_t> ids = {1, 2, 3, 10, 9, 2, 3, 20, 1, 2, 3}, guess;
  lookup.guess(ids, 1, guess);
  EXPECT_THAT(guess, ElementsAre(10));
}

TEST(PromptLookup, ARepetitionRepeats) {
  PromptLookup lookup;
  std::vector<int32_t> ids = {5, 6, 7, 5, 6, 7, 5}, guess;
  lookup.guess(ids, 7, guess);
  EXPECT_THAT(guess, ElementsAre(6, 7, 5, 6, 7, 5, 6));
}

TEST(PromptLookup, ShortTexts) {
  std::vector<int32_t> guess;
  for (size_t n = 0; n < 4; ++n) {
    PromptLookup lookup;
    const std::vector<int32_t> ids(n, 3);
    lookup.guess(ids, 4, guess);
    EXPECT_EQ(guess, n < 3 ? std::vector<int32_t>() : std::vector<int32_t>(4, 3)) << n;
  }
}

}  // namespace
}  // namespace minfer
