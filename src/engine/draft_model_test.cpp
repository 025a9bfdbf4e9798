// The draft model alone: what it refuses, that it guesses what the model itself would draw, that it follows what
// became of its guesses, and how it gives way when memory or time are short.
#include "engine/draft_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/golden_variant.h"
#include "engine/testing/plain_decode.h"
#include "sample/sampler.h"

namespace minfer {
namespace {

using testing::golden_path;
using testing::GoldenVariant;
using testing::open_golden;

constexpr double kPlenty = 1e9;  // ms

DraftOptions options_of(int32_t n_ctx, int32_t n_seqs, int64_t positions) {
  DraftOptions o;
  o.runner.n_threads = 1, o.runner.n_ctx = n_ctx, o.runner.n_seqs = n_seqs;
  o.positions = positions;
  return o;
}

std::unique_ptr<DraftModel> draft_of(const DraftOptions& options) {
  auto d = DraftModel::create(open_golden("llama"), *open_golden("llama"), options);
  if (!d.ok()) ADD_FAILURE() << d.error().message;
  return d.ok() ? std::move(d).value() : nullptr;
}

std::vector<int32_t> some_ids(int32_t n, int32_t salt = 0) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < n; ++i) ids.push_back(3 + (i * 7 + salt * 13 + i * i * salt) % 50);
  return ids;
}

// The greedy continuation, one token at a time.
std::vector<int32_t> greedy(const std::vector<int32_t>& prompt, int32_t n) {
  const auto model = open_golden("llama");
  Request r;
  r.prompt = prompt;
  r.max_tokens = n;
  r.ignore_eos = true;
  r.sampling.temperature = 0;
  return testing::PlainDecoder(*model, DType::kF16, DType::kF16, 256).answer(r).choices[0].ids;
}

// A run that draws greedily.
struct Greedy {
  explicit Greedy(std::vector<int32_t> prompt) : ids(std::move(prompt)) {}
  DraftAsk ask(int32_t depth) {
    return {&run, &ids, depth, [](std::span<const float> row) { return argmax(row); }};
  }
  std::vector<int32_t> ids;
  DraftRun run;
};

std::vector<int32_t> propose(DraftModel& d, Greedy& g, int32_t depth, double budget_ms = kPlenty) {
  DraftAsk ask = g.ask(depth);
  const auto before = g.ids;
  d.propose({&ask, 1}, budget_ms);
  EXPECT_EQ(g.ids, before);
  return g.run.guesses;
}

// Asks until it has caught up.
std::vector<int32_t> propose_in_time(DraftModel& d, Greedy& g, int32_t depth) {
  for (int i = 0; i < 100; ++i) {
    if (auto guesses = propose(d, g, depth); !guesses.empty()) return guesses;
  }
  ADD_FAILURE() << "no guesses";
  return {};
}

std::vector<int32_t> part(const std::vector<int32_t>& ids, size_t from, size_t n) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(from), ids.begin() + static_cast<std::ptrdiff_t>(from + n)};
}

TEST(DraftModel, RefusesAnotherVocabulary) {
  const auto target = open_golden("llama");
  const auto refusal = [&](std::unique_ptr<Model> draft) {
    const auto d = DraftModel::create(std::move(draft), *target, options_of(64, 1, 64));
    EXPECT_FALSE(d.ok());
    return d.ok() ? std::string() : d.error().message;
  };
  EXPECT_THAT(refusal(open_golden("qwen3")),
              ::testing::HasSubstr("a vocabulary of 64 tokens, expected the 61 of the model"));
  const auto changed = [&](const std::function<void(gguf::MetadataBuilder&)>& change) {
    const GoldenVariant v("llama", false, change);
    auto m = Model::open(v.path());
    EXPECT_TRUE(m.ok()) << m.error().message;
    return refusal(std::move(m).value());
  };
  EXPECT_THAT(changed([&](gguf::MetadataBuilder& m) {
                std::vector<std::string> tokens;
                for (int32_t id = 0; id < 61; ++id) tokens.emplace_back(target->tokenizer()->text(id));
                tokens[17] = "other";
                m.set_strings("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
              }),
              ::testing::HasSubstr("token 17 is 'other', expected '\u2581w17', as in the model"));
  EXPECT_THAT(changed([](gguf::MetadataBuilder& m) { m.set("tokenizer.ggml.eos_token_id", uint32_t{5}); }),
              ::testing::HasSubstr("eos is 5 '\u2581w5', expected 2 '</s>', as in the model"));
}

TEST(DraftModel, GuessesWhatTheSameModelDraws) {
  const auto d = draft_of(options_of(256, 4, 4096));
  std::vector<Greedy> runs;
  std::vector<std::vector<int32_t>> want;
  for (int32_t i = 0; i < 4; ++i) {
    runs.emplace_back(some_ids(5 + 20 * i, i));
    want.push_back(greedy(runs.back().ids, 12));
  }
  // All at once, as deep as each asks for.
  for (int round = 0; round < 20; ++round) {
    std::vector<DraftAsk> asks;
    for (size_t i = 0; i < 4; ++i) asks.push_back(runs[i].ask(static_cast<int32_t>(2 * i + 1)));
    d->propose(asks, kPlenty);
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(runs[i].run.guesses, part(want[i], 0, 2 * i + 1)) << i;
  for (auto& r : runs) d->release(r.run);
  EXPECT_TRUE(d->check_idle(false).ok());
  EXPECT_EQ(d->failures(), 0);
}

TEST(DraftModel, FollowsWhatBecameOfItsGuesses) {
  const auto d = draft_of(options_of(256, 2, 4096));
  Greedy g(some_ids(40));
  for (const size_t come_true : {0u, 2u, 4u, 1u, 3u}) {
    const auto guesses = propose_in_time(*d, g, 4);
    ASSERT_EQ(guesses, part(greedy(g.ids, 4), 0, 4)) << come_true;
    g.ids.insert(g.ids.end(), guesses.begin(), guesses.begin() + static_cast<std::ptrdiff_t>(come_true));
    g.ids.push_back(some_ids(60)[g.ids.size() % 60]);
    EXPECT_LE(d->missing(g.run, g.ids), 6);
  }
  EXPECT_EQ(propose_in_time(*d, g, 4), greedy(g.ids, 4));
  // Asked again without anything new, and after a while without it.
  EXPECT_EQ(propose_in_time(*d, g, 3), greedy(g.ids, 3));
  for (int32_t id : some_ids(30, 5)) g.ids.push_back(id);
  EXPECT_EQ(propose_in_time(*d, g, 2), greedy(g.ids, 2));
  d->release(g.run);
  // Another run of the same text finds its pages.
  Greedy again(g.ids);
  EXPECT_LT(d->missing(again.run, again.ids), 40);
  EXPECT_EQ(propose_in_time(*d, again, 2), greedy(g.ids, 2));
  d->release(again.run);
  EXPECT_TRUE(d->check_idle(true).ok());
}

TEST(DraftModel, ALongTextIsReadInParts) {
  const auto d = draft_of(options_of(256, 2, 4096));
  Greedy g(some_ids(200));
  int steps = 1;
  while (propose(*d, g, 2, /*budget_ms=*/1e-6).empty() && steps < 100) ++steps;
  EXPECT_EQ(steps, 200 / 8);
  EXPECT_EQ(g.run.guesses, greedy(g.ids, 1));  // no time for a second
  d->release(g.run);
  // Others that begin alike wait for it and read only what is their own.
  Greedy a(some_ids(150, 3)), b(some_ids(150, 3));
  a.ids.push_back(7), b.ids.push_back(8);
  for (int i = 0; i < 30 && (a.run.guesses.empty() || b.run.guesses.empty()); ++i) {
    std::vector<DraftAsk> asks{a.ask(1), b.ask(1)};
    d->propose(asks, 1e-6);
    if (a.run.guesses.empty()) {
      EXPECT_GE(d->missing(b.run, b.ids), 151 - 128);
    }
  }
  EXPECT_EQ(a.run.guesses, greedy(a.ids, 1));
  EXPECT_EQ(b.run.guesses, greedy(b.ids, 1));
}

TEST(DraftModel, WithoutRoomThereAreFewerGuesses) {
  const auto d = draft_of(options_of(64, 3, 64));  // two pages
  EXPECT_EQ(d->room(60), 5);
  Greedy a(some_ids(30)), b(some_ids(30, 1)), c(some_ids(20, 2));
  EXPECT_EQ(propose_in_time(*d, a, 3), greedy(a.ids, 3));
  EXPECT_EQ(propose_in_time(*d, b, 8).size(), 1u);  // a second page would be needed
  EXPECT_TRUE(propose(*d, c, 1).empty());
  EXPECT_EQ(c.run.seq, -1);
  EXPECT_FALSE(d->usable(c.run));
  int rests = 1;
  while (!d->usable(c.run)) ++rests;
  EXPECT_GT(rests, 10);
  // Whoever has not asked for long loses its pages to one that asks.
  for (int i = 0; i < 100; ++i) propose(*d, b, 1);
  EXPECT_EQ(propose_in_time(*d, c, 1), greedy(c.ids, 1));
  EXPECT_EQ(a.run.seq, -1);
  for (Greedy* g : {&a, &b, &c}) d->release(g->run);
  EXPECT_TRUE(d->check_idle(true).ok());
}

TEST(DraftModel, AShorterContextIsNoError) {
  DraftOptions o = options_of(256, 2, 4096);
  o.kv_memory = kv_bytes_per_token(open_golden("llama")->hparams(), DType::kF16, DType::kF16) * 96;
  EXPECT_EQ(draft_of(o)->runner().n_ctx(), 96);
  o.kv_memory = 1;
  const auto d = DraftModel::create(open_golden("llama"), *open_golden("llama"), o);
  ASSERT_FALSE(d.ok());
  EXPECT_THAT(d.error().message, ::testing::HasSubstr("kv_memory of 1 bytes"));
}

TEST(DraftModel, ADrawThatFailsIsTheRunsAlone) {
  const auto d = draft_of(options_of(256, 2, 4096));
  Greedy a(some_ids(6)), b(some_ids(6, 1));
  std::vector<DraftAsk> asks{a.ask(3), b.ask(3)};
  asks[0].draw = [](std::span<const float>) -> Result<int32_t> { return make_error(ErrorCode::kInternal, "no"); };
  d->propose(asks, kPlenty);
  EXPECT_TRUE(a.run.guesses.empty());
  EXPECT_FALSE(d->usable(a.run));
  EXPECT_EQ(b.run.guesses, greedy(b.ids, 3));
  EXPECT_TRUE(d->usable(b.run));
  EXPECT_EQ(d->failures(), 1);
  asks = {b.ask(3)};
  asks[0].draw = [](std::span<const float>) -> Result<int32_t> { return -1; };  // the answer would end here
  d->propose(asks, kPlenty);
  EXPECT_TRUE(b.run.guesses.empty());
  d->release(b.run);
  EXPECT_TRUE(d->check_idle(false).ok());
}

}  // namespace
}  // namespace minfer
