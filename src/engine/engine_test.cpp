// Runner, Session and generate() on a tiny model (tests/golden/llama): what they refuse and leave behind, what a
// session keeps of a conversation, how an answer ends.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "engine/generate.h"

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

// --- Session
// -------------------------------------------------------------------------------------------------------------
TEST(Session, AContinuedConversationIsTheSameAsAFreshOne) {
  RunnerOptions o = options_of(256, 2);
  o.chunk = 16;
  const auto runner = runner_of(o);
  auto session = Session::open(*runner), fresh = Session::open(*runner);
  ASSERT_TRUE(session.ok() && fresh.ok());
  const auto first = some_ids(70);
  ASSERT_TRUE(session->feed(first).ok());
  // A new turn that shares 50 ids with what is cached.
  std::vector<int32_t> second(first.begin(), first.begin() + 50);
  for (int32_t id : some_ids(33)) second.push_back(59 - id);
  EXPECT_EQ(session->match(second), 50u);
  EXPECT_EQ(session->ids().size(), 50u);
  size_t done = 0;
  const auto got =
      session->feed(std::span(second).subspan(50), [&](size_t n, size_t total) { return done = n, total == 33u; });
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(done, 33u);
  const std::vector<float> logits = copy(*got);
  const auto want = fresh->feed(second);
  ASSERT_TRUE(want.ok()) << want.error().message;
  expect_same(logits, *want);
  EXPECT_EQ(session->ids(), second);
  // The same prompt again: all but its last id stays.
  EXPECT_EQ(session->match(second), second.size() - 1);
  const auto again = session->feed(std::span(second).last(1));
  ASSERT_TRUE(again.ok());
  expect_same(*again, logits);
}

TEST(Session, FeedAllGivesEveryRow) {
  RunnerOptions o = options_of(64, 2);
  o.chunk = 8;
  const auto runner = runner_of(o);
  auto session = Session::open(*runner), single = Session::open(*runner);
  ASSERT_TRUE(session.ok() && single.ok());
  const auto ids = some_ids(21);
  std::vector<std::vector<float>> rows;
  const Status s = session->feed_all(ids, [&](size_t i, std::span<const float> row) -> Status {
    EXPECT_EQ(i, rows.size());
    rows.push_back(copy(row));
    return {};
  });
  ASSERT_TRUE(s.ok()) << s.error().message;
  ASSERT_EQ(rows.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto row = single->feed(std::span(ids).subspan(i, 1));
    ASSERT_TRUE(row.ok());
    expect_same(*row, rows[i]);
  }
}

TEST(Session, WhatDoesNotFitIsNotFed) {
  const auto runner = runner_of(options_of(40));
  auto session = Session::open(*runner);
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(session->feed(some_ids(30)).ok());
  const auto r = session->feed(some_ids(11));
  ASSERT_FALSE(r.ok());
  expect_error(r.error(), ErrorCode::kOutOfRange, "11 tokens do not fit: 30 of the context's 40");
  EXPECT_EQ(session->ids().size(), 30u);
  EXPECT_TRUE(session->feed(some_ids(10)).ok());
  EXPECT_EQ(session->room(), 0);
  EXPECT_FALSE(session->feed({}).ok());
}

// --- generate()
// ----------------------------------------------------------------------------------------------------------
GenerateOptions greedy(int32_t n) {
  GenerateOptions o;
  o.max_tokens = n;
  o.sampling.temperature = 0;
  return o;
}

TEST(Generate, EndsByLengthContextAndCancel) {
  const auto runner = runner_of(options_of(48));
  auto session = Session::open(*runner);
  ASSERT_TRUE(session.ok());
  const auto prompt = some_ids(20);
  GenerateOptions o = greedy(7);
  o.ignore_eos = true;
  std::string streamed;
  o.on_text = [&](std::string_view text) { streamed += text; };
  const auto length = generate(*session, prompt, o);
  ASSERT_TRUE(length.ok()) << length.error().message;
  EXPECT_EQ(length->finish, FinishReason::kLength);
  EXPECT_EQ(length->ids.size(), 7u);
  EXPECT_EQ(length->text, streamed);
  EXPECT_EQ(length->stats.prompt_tokens, 20);
  EXPECT_EQ(length->stats.generated_tokens, 7);
  EXPECT_EQ(length->stats.forward_ms.size(), 6u);  // the last id is not fed

  // 28 positions are left for ids to be fed; the last one drawn needs none.
  o.max_tokens = -1;
  const auto context = generate(*session, prompt, o);
  ASSERT_TRUE(context.ok()) << context.error().message;
  EXPECT_EQ(context->finish, FinishReason::kContext);
  EXPECT_EQ(context->ids.size(), 29u);
  EXPECT_EQ(context->stats.cached_tokens, 19);
  EXPECT_TRUE(std::equal(length->ids.begin(), length->ids.end(), context->ids.begin()));

  const std::atomic<bool> cancel{true};
  o.cancel = &cancel;
  const auto cancelled = generate(*session, prompt, o);
  ASSERT_TRUE(cancelled.ok()) << cancelled.error().message;
  EXPECT_EQ(cancelled->finish, FinishReason::kCancelled);

  o.cancel = nullptr;
  EXPECT_FALSE(generate(*session, some_ids(49), o).ok());  // does not fit
  EXPECT_FALSE(generate(*session, {}, o).ok());
}

TEST(Generate, StopsAtAnEndTokenWhichIsNotPartOfTheAnswer) {
  const auto runner = runner_of(options_of(64));
  auto session = Session::open(*runner);
  ASSERT_TRUE(session.ok());
  GenerateOptions o = greedy(20);
  o.sampling.logit_bias = {{tiny().tokenizer()->eos(), 1000.0f}};
  o.sampling.temperature = 1;
  const auto stop = generate(*session, some_ids(5), o);
  ASSERT_TRUE(stop.ok()) << stop.error().message;
  EXPECT_EQ(stop->finish, FinishReason::kStop);
  EXPECT_TRUE(stop->ids.empty());
  EXPECT_EQ(stop->text, "");
}

TEST(Generate, SameSeedSameAnswer) {
  GenerateOptions o;
  o.max_tokens = 24, o.ignore_eos = true;
  o.sampling.temperature = 1.5f, o.sampling.seed = 7;
  std::vector<std::vector<int32_t>> answers;
  for (int n_threads : {1, 2}) {
    for (int32_t chunk : {3, 512}) {
      RunnerOptions r = options_of(64);
      r.n_threads = n_threads, r.chunk = chunk;
      const auto runner = runner_of(r);
      auto session = Session::open(*runner);
      ASSERT_TRUE(session.ok());
      const auto answer = generate(*session, some_ids(20), o);
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      answers.push_back(answer->ids);
    }
  }
  for (const auto& a : answers) EXPECT_EQ(a, answers[0]);
  o.sampling.seed = 8;
  const auto runner = runner_of(options_of(64));
  auto session = Session::open(*runner);
  ASSERT_TRUE(session.ok());
  const auto other = generate(*session, some_ids(20), o);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->ids, answers[0]);
}

}  // namespace
}  // namespace minfer
