// Runner and feed() on a tiny model (tests/golden/llama): what they refuse and leave behind.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "engine/feed.h"

namespace minfer {
namespace {

const Model& tiny() {
  static const std::unique_ptr<Model> model = [] {
    auto m = Model::open(std::string(MINFER_SOURCE_DIR) + "/tests/golden/llama/model.gguf");
    if (!m.ok()) ADD_FAILURE() << m.error().message;
    return std::move(m).value();
  }();
  return *model;
}

RunnerOptions options_of(int32_t n_ctx, int32_t n_seqs = 1) {
  RunnerOptions o;
  o.n_threads = 1, o.n_ctx = n_ctx, o.n_seqs = n_seqs;
  return o;
}

std::unique_ptr<Runner> runner_of(const RunnerOptions& options) {
  auto r = Runner::create(tiny(), options);
  if (!r.ok()) ADD_FAILURE() << r.error().message;
  return std::move(r).value();
}

std::vector<int32_t> some_ids(int32_t n) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < n; ++i) ids.push_back(3 + i * 7 % 50);
  return ids;
}

std::vector<float> copy(std::span<const float> x) { return {x.begin(), x.end()}; }

void expect_same(std::span<const float> a, std::span<const float> b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0);
}

void expect_error(const Error& error, ErrorCode code, const char* part) {
  EXPECT_EQ(error.code, code) << error.message;
  EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
}

// --- Runner
// --------------------------------------------------------------------------------------------------------------
TEST(RunnerOptions, OutOfRange) {
  struct Case {
    std::function<void(RunnerOptions&)> change;
    const char* says;
  };
  const std::vector<Case> cases = {
      {[](RunnerOptions& o) { o.n_ctx = 513; }, "expected 1 to 512"},
      {[](RunnerOptions& o) { o.n_ctx = -1; }, "-1"},
      {[](RunnerOptions& o) { o.n_seqs = 0; }, "0 sequences"},
      {[](RunnerOptions& o) { o.n_seqs = std::numeric_limits<int32_t>::max(); }, "2147483647 sequences"},
      {[](RunnerOptions& o) { o.chunk = 5000; }, "5000"},
      {[](RunnerOptions& o) { o.type_k = DType::kQ4_0; }, "q4_0"},
      {[](RunnerOptions& o) { o.backend.device = "gpu"; }, "gpu"},
      {[](RunnerOptions& o) { o.backend.isa = "mmx"; }, "mmx"},
      {[](RunnerOptions& o) { o.progress = [](int64_t, int64_t) { return false; }; }, "cancelled"},
  };
  for (const Case& c : cases) {
    RunnerOptions o = options_of(64);
    c.change(o);
    const auto r = Runner::create(tiny(), o);
    ASSERT_FALSE(r.ok()) << c.says;
    EXPECT_NE(r.error().message.find(c.says), std::string::npos) << r.error().message;
  }
}

TEST(RunnerOptions, Q8CacheNeedsHeadsOf32) {
  auto odd = Model::open(std::string(MINFER_SOURCE_DIR) + "/tests/golden/mistral/model.gguf");  // heads of 14
  ASSERT_TRUE(odd.ok()) << odd.error().message;
  RunnerOptions o = options_of(64);
  o.type_v = DType::kQ8_0;
  const auto r = Runner::create(**odd, o);
  ASSERT_FALSE(r.ok());
  expect_error(r.error(), ErrorCode::kUnsupported, "14");
}

TEST(Runner, AFailedStepLeavesEverythingAsItWas) {
  const auto runner = runner_of(options_of(64, 2));
  const auto seq = runner->open_sequence();
  ASSERT_TRUE(seq.ok());
  const auto step = [&](std::vector<BatchToken> batch) { return runner->step(batch); };
  ASSERT_TRUE(step({{5, 0, *seq, false}, {6, 1, *seq, false}}).ok());
  const int32_t pages = runner->pages_free();
  struct Case {
    std::vector<BatchToken> batch;
    const char* says;
  };
  const std::vector<Case> cases = {
      {{}, "0 tokens"},
      {std::vector<BatchToken>(5000, {5, 2, *seq, false}), "5000 tokens"},
      {{{61, 2, *seq, true}}, "token id 61"},
      {{{-1, 2, *seq, true}}, "token id -1"},
      {{{5, 2, *seq, true}, {5, 3, *seq, true}, {99, 4, *seq, true}}, "token id 99"},  // after good ones
      {{{5, 3, *seq, true}}, "position 3"},                                            // a gap
      {{{5, 1, *seq, true}}, "position 1"},                                            // there already
      {{{5, -1, *seq, true}}, "position -1"},
      {{{5, 2, *seq, true}, {5, 2, *seq, true}}, "position 2"},
      {{{5, 2, 1, true}}, "sequence 1 is not open"},
      {{{5, 2, 7, true}}, "sequence 7 is not open"},
      {{{5, 2, -1, true}}, "sequence -1 is not open"},
  };
  for (const Case& c : cases) {
    const auto r = step(c.batch);
    ASSERT_FALSE(r.ok()) << c.says;
    EXPECT_NE(r.error().message.find(c.says), std::string::npos) << r.error().message;
    EXPECT_EQ(runner->length(*seq), 2);
    EXPECT_EQ(runner->pages_free(), pages);
  }
  // A batch that runs over the context fails as a whole, and pages it took go back.
  std::vector<BatchToken> over;
  for (int32_t p = 2; p <= 64; ++p) over.push_back({5, p, *seq, false});
  const auto r = step(over);
  ASSERT_FALSE(r.ok());
  expect_error(r.error(), ErrorCode::kOutOfRange, "64 positions");
  EXPECT_EQ(runner->pages_free(), pages);

  // And the sequence goes on as one that met no failures.
  const auto got = step({{7, 2, *seq, true}});
  ASSERT_TRUE(got.ok()) << got.error().message;
  const std::vector<float> logits = copy(*got);
  const auto clean = runner->open_sequence();
  ASSERT_TRUE(clean.ok());
  const auto want = step({{5, 0, *clean, false}, {6, 1, *clean, false}, {7, 2, *clean, true}});
  ASSERT_TRUE(want.ok()) << want.error().message;
  expect_same(logits, *want);
}

TEST(Runner, SequencesAreFew) {
  const auto runner = runner_of(options_of(64, 2));
  const auto a = runner->open_sequence(), b = runner->open_sequence(), c = runner->open_sequence();
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_FALSE(c.ok());
  expect_error(c.error(), ErrorCode::kResourceExhausted, "2");
  runner->close_sequence(*a);
  EXPECT_TRUE(runner->open_sequence().ok());
}

// --- feed()
// -------------------------------------------------------------------------------------------------------------
TEST(Feed, WhatFollowsACutIsTheSameAsFresh) {
  RunnerOptions o = options_of(256, 2);
  o.chunk = 16;
  const auto runner = runner_of(o);
  const int32_t seq = *runner->open_sequence(), fresh = *runner->open_sequence();
  const auto first = some_ids(70);
  ASSERT_TRUE(feed(*runner, seq, first).ok());
  std::vector<int32_t> second(first.begin(), first.begin() + 50);
  for (int32_t id : some_ids(33)) second.push_back(59 - id);
  runner->truncate(seq, 50);
  const auto got = feed(*runner, seq, std::span(second).subspan(50));
  ASSERT_TRUE(got.ok()) << got.error().message;
  const std::vector<float> logits = copy(*got);
  const auto want = feed(*runner, fresh, second);
  ASSERT_TRUE(want.ok()) << want.error().message;
  expect_same(logits, *want);
  EXPECT_EQ(runner->length(seq), 83);
  runner->truncate(seq, 82);
  const auto again = feed(*runner, seq, std::span(second).last(1));
  ASSERT_TRUE(again.ok());
  expect_same(*again, logits);
}

TEST(Feed, AllGivesEveryRow) {
  RunnerOptions o = options_of(64, 2);
  o.chunk = 8;
  const auto runner = runner_of(o);
  const int32_t seq = *runner->open_sequence(), single = *runner->open_sequence();
  const auto ids = some_ids(21);
  std::vector<std::vector<float>> rows;
  const Status s = feed_all(*runner, seq, ids, [&](size_t i, std::span<const float> row) -> Status {
    EXPECT_EQ(i, rows.size());
    rows.push_back(copy(row));
    return {};
  });
  ASSERT_TRUE(s.ok()) << s.error().message;
  ASSERT_EQ(rows.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto row = feed(*runner, single, std::span(ids).subspan(i, 1));
    ASSERT_TRUE(row.ok());
    expect_same(*row, rows[i]);
  }
}

TEST(Feed, WhatDoesNotFitIsNotFed) {
  const auto runner = runner_of(options_of(40));
  const int32_t seq = *runner->open_sequence();
  ASSERT_TRUE(feed(*runner, seq, some_ids(30)).ok());
  const auto r = feed(*runner, seq, some_ids(11));
  ASSERT_FALSE(r.ok());
  expect_error(r.error(), ErrorCode::kOutOfRange, "11 tokens do not fit: 30 of the context's 40");
  EXPECT_EQ(runner->length(seq), 30);
  EXPECT_TRUE(feed(*runner, seq, some_ids(10)).ok());
  EXPECT_FALSE(feed(*runner, seq, some_ids(1)).ok());
  EXPECT_FALSE(feed(*runner, seq, {}).ok());
}

}  // namespace
}  // namespace minfer
