// Engine on a tiny model: what it refuses and with which words, how answers end, what is shared, what a cancel, a
// deadline, an error and a slow reader do to others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "engine/testing/plain_decode.h"
#include "engine/testing/small_engine.h"
#include "minfer/engine.h"

namespace minfer {
namespace {

using testing::difference;
using testing::engine_of;
using testing::open_golden;
using testing::plain;
using testing::PlainDecoder;
using testing::request_of;
using testing::small_options;
using testing::some_ids;

TEST(EngineOptions, OutOfRange) {
  struct Case {
    std::function<void(EngineOptions&)> change;
    const char* says;
  };
  const std::vector<Case> cases = {
      {[](EngineOptions& o) { o.ctx = 100000; }, "expected 1 to 512"},
      {[](EngineOptions& o) { o.max_running = 0; }, "max_running: found 0"},
      {[](EngineOptions& o) { o.max_stall_ms = std::nan(""); }, "max_stall_ms: found nan"},
      {[](EngineOptions& o) { o.cache_type_v = "q4_0"; }, "'q4_0': expected f32, f16, bf16 or q8_0"},
      {[](EngineOptions& o) { o.kv_memory = 10; }, "kv_memory of 10 bytes"},
      {[](EngineOptions& o) { o.kv_memory = 40000; }, "expected at least the 256 of one sequence's context"},
      {[](EngineOptions& o) { o.chunk = -1; }, "chunk: found -1, expected 0 to 4096"},
      {[](EngineOptions& o) { o.model_sha256 = "zz"; }, "model_sha256: found 'zz'"},
      {[](EngineOptions& o) { o.speculation = 100; }, "speculation: found 100, expected 0 to 64"},
      {[](EngineOptions& o) { o.progress = [](int64_t, int64_t) { return false; }; }, "cancelled"},
  };
  for (const Case& c : cases) {
    EngineOptions o = small_options();
    c.change(o);
    const auto e = Engine::create(open_golden("llama"), o);
    ASSERT_FALSE(e.ok()) << c.says;
    EXPECT_NE(e.error().message.find(c.says), std::string::npos) << e.error().message;
  }
  EXPECT_FALSE(Engine::open("no/such/file.gguf", small_options()).ok());
}

TEST(Engine, RefusesWhatMakesNoSenseAndWhatCanNeverFit) {
  const auto engine = engine_of(small_options());
  struct Case {
    std::function<void(Request&)> change;
    const char* says;
  };
  const std::vector<Case> cases = {
      {[](Request& r) { r.prompt.clear(); }, "the prompt is empty"},
      {[](Request& r) { r.prompt[2] = 61; }, "prompt: token id 61, expected 0 to 60"},
      {[](Request& r) { r.prompt[2] = -1; }, "token id -1"},
      {[](Request& r) { r.text = "x"; }, "as ids and as text"},
      {[](Request& r) { r.stop_ids = {99}; }, "stop_ids: token id 99"},
      {[](Request& r) {
         r.sampling.logit_bias = {{99, 1.0f}};
       },
       "logit_bias: token id 99"},
      {[](Request& r) { r.sampling.top_p = 0; }, "top_p: found 0"},
      {[](Request& r) { r.n = 0; }, "n: found 0, expected 1 to 128"},
      {[](Request& r) { r.n = 3, r.best_of = 2; }, "best_of: found 2, expected n (3) to 128, or 0"},
      {[](Request& r) { r.best_of = 129; }, "best_of: found 129"},
      {[](Request& r) { r.best_of = -1; }, "best_of: found -1"},
      {[](Request& r) { r.max_tokens = -2; }, "max_tokens: found -2"},
      {[](Request& r) { r.min_tokens = 6; }, "min_tokens: found 6, expected 0 to 5"},
      {[](Request& r) { r.top_logprobs = 62; }, "top_logprobs: found 62, expected 0 to 61"},
      {[](Request& r) { r.deadline_ms = -1; }, "deadline_ms: found -1"},
      {[](Request& r) { r.deadline_ms = INFINITY; }, "deadline_ms: found inf"},
      {[](Request& r) { r.stop = {""}; }, "stop"},
      {[](Request& r) {
         r.prompt = some_ids(257);
         r.max_tokens = -1;
       },
       "a prompt of 257 tokens and 1 to draw need 257"},
      {[](Request& r) { r.max_tokens = 300; }, "and 300 to draw need 309 positions, the context has 256"},
  };
  for (const Case& c : cases) {
    Request r = request_of(some_ids(10), 5);
    c.change(r);
    const auto s = engine->submit(r);
    ASSERT_FALSE(s.ok()) << c.says;
    EXPECT_NE(s.error().message.find(c.says), std::string::npos) << s.error().message;
  }
  EXPECT_EQ(engine->stats().requests_refused, static_cast<int64_t>(cases.size()));
  EXPECT_TRUE(engine->run(request_of(some_ids(256), 1)).ok());  // the last token needs no position
}

TEST(Engine, ASecondTurnComputesOnlyWhatIsNew) {
  const auto engine = engine_of(small_options());
  Request r = request_of(some_ids(100), 20);
  const auto first = engine->run(r);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->cached_tokens, 0);
  EXPECT_EQ(difference(first->choices[0], plain(r).choices[0]), "");
  Request next = r;
  next.prompt.insert(next.prompt.end(), first->choices[0].ids.begin(), first->choices[0].ids.end());
  for (int32_t id : some_ids(10, 1)) next.prompt.push_back(id);
  const auto second = engine->run(next);
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second->cached_tokens, 119);  // all but the last id drawn, which was not computed yet
  EXPECT_EQ(difference(second->choices[0], plain(next).choices[0]), "");
  EXPECT_TRUE(engine->check_idle(true).ok());
  EXPECT_EQ(engine->stats().kv_pages_free, engine->stats().kv_pages);
}

TEST(Engine, RequestsThatComeTogetherShareAPrefixToo) {
  const auto engine = engine_of(small_options());
  std::vector<Stream> streams;
  for (int32_t i = 0; i < 4; ++i) {
    Request r = request_of(some_ids(96), 3);
    for (int32_t id : some_ids(5, i + 1)) r.prompt.push_back(id);
    streams.push_back(std::move(engine->submit(r)).value());
  }
  for (auto& s : streams) ASSERT_TRUE(s.wait().ok());
  EXPECT_EQ(engine->stats().tokens_prefilled, 96 + 4 * 5);
}

TEST(Engine, TheContextEnds) {
  EngineOptions o = small_options();
  o.ctx = 48;
  const auto engine = engine_of(o);
  const Request r = request_of(some_ids(20), -1);
  const auto got = engine->run(r);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->choices[0].finish, FinishReason::kContext);
  EXPECT_EQ(got->choices[0].ids.size(), 29u);
  EXPECT_EQ(difference(got->choices[0], plain(r, 48).choices[0]), "");
}

TEST(Engine, ACancelFreesItsMemory) {
  EngineOptions o = small_options();
  o.prefix_cache = false;
  o.stream_tokens = 4;  // it cannot end before it is read
  const auto engine = engine_of(o);
  auto stream = engine->submit(request_of(some_ids(30), 200));
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE(stream->next().ok());
  stream->cancel();
  const auto got = stream->wait();
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->choices[0].finish, FinishReason::kCancelled);
  EXPECT_GE(got->choices[0].ids.size(), 1u);
  EXPECT_LT(got->choices[0].ids.size(), 200u);
  EXPECT_TRUE(engine->check_idle().ok());
  EXPECT_EQ(engine->stats().kv_pages_free, engine->stats().kv_pages);
  {
    auto dropped = engine->submit(request_of(some_ids(30), 200));  // never read
    ASSERT_TRUE(dropped.ok());
  }
  EXPECT_TRUE(engine->check_idle().ok());
  EXPECT_EQ(engine->stats().kv_pages_free, engine->stats().kv_pages);
}

TEST(Engine, AStreamThatIsNotReadWaitsAndHoldsNobodyUp) {
  EngineOptions o = small_options();
  o.stream_tokens = 4;
  const auto engine = engine_of(o);
  const Request r = request_of(some_ids(30), 40);
  auto slow = engine->submit(r);
  ASSERT_TRUE(slow.ok());
  Request other = request_of(some_ids(30, 2), 60);
  other.on_event = [](const Event&) { return true; };
  ASSERT_TRUE(engine->run(other).ok());
  int polled = 0;
  while (slow->poll()->has_value()) ++polled;
  EXPECT_LE(polled, 40);
  const auto got = slow->wait();
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(difference(got->choices[0], plain(r).choices[0]), "");
}

TEST(Engine, ADeadlineGivesWhatThereIs) {
  const auto engine = engine_of(small_options());
  Request r = request_of(some_ids(30), 200);
  r.deadline_ms = 0.001;
  const auto got = engine->run(r);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->choices[0].finish, FinishReason::kDeadline);
  EXPECT_LT(got->choices[0].ids.size(), 200u);
}

TEST(Engine, AnErrorIsItsRequestsAlone) {
  const auto engine = engine_of(small_options());
  Request bad = request_of(some_ids(30), 50);
  bad.n = 2;
  bad.mask = [](int32_t choice, std::span<const int32_t> generated, std::span<uint32_t>) -> Status {
    if (choice == 1 && generated.size() == 5) return Error{ErrorCode::kInvalidArgument, "the grammar allows nothing"};
    return {};
  };
  Request nothing = request_of(some_ids(30, 3), 50);
  nothing.mask = [](int32_t, std::span<const int32_t> generated, std::span<uint32_t> allowed) -> Status {
    if (generated.size() == 3) std::fill(allowed.begin(), allowed.end(), 0u);
    return {};
  };
  const Request good = request_of(some_ids(30, 1), 50);
  auto a = engine->submit(bad), b = engine->submit(good), c = engine->submit(nothing);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  const auto got_a = a->wait(), got_b = b->wait(), got_c = c->wait();
  ASSERT_FALSE(got_a.ok());
  EXPECT_EQ(got_a.error().message, "the grammar allows nothing");
  ASSERT_TRUE(got_b.ok());
  EXPECT_EQ(difference(got_b->choices[0], plain(good).choices[0]), "");
  ASSERT_FALSE(got_c.ok());
  EXPECT_EQ(got_c.error().message, "[engine] choice 0, token 3: the mask allows no token at all");
  EXPECT_TRUE(engine->check_idle(true).ok());
}

TEST(Engine, ACallbackInsteadOfAStream) {
  const auto engine = engine_of(small_options());
  Request r = request_of(some_ids(30), 20);
  std::vector<int32_t> ids;
  std::string text;
  r.on_event = [&](const Event& e) {
    ids.insert(ids.end(), e.ids.begin(), e.ids.end());
    text += e.text;
    return true;
  };
  const auto got = engine->run(r);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(ids, got->choices[0].ids);
  EXPECT_EQ(text, got->choices[0].text);
  r.max_tokens = 200;
  r.on_event = [](const Event& e) { return false; };
  const auto stopped = engine->run(r);
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped->choices[0].finish, FinishReason::kCancelled);
}

TEST(Engine, Embeddings) {
  EngineOptions o = small_options();
  const auto engine = engine_of(o);
  const auto model = open_golden("llama");
  PlainDecoder plain(*model, DType::kF32, DType::kF32, 256);
  EmbedRequest r;
  r.prompts = {some_ids(70), some_ids(1, 3), some_ids(256, 5)};
  for (Pooling p : {Pooling::kMean, Pooling::kLast, Pooling::kCls, Pooling::kNone}) {
    r.pooling = p;
    for (bool normalize : {true, false}) {
      r.normalize = normalize;
      const auto got = engine->embed(r);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(got->rows, plain.embed(r).rows);
      EXPECT_EQ(got->prompt_tokens, 327);
      EXPECT_EQ(got->n_embd, model->hparams().n_embd);
      if (!normalize || p == Pooling::kNone) continue;
      double sum = 0;
      for (float x : got->rows[0]) sum += static_cast<double>(x) * static_cast<double>(x);
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
  r.prompts[1].clear();
  EXPECT_THAT(engine->embed(r).error().message, ::testing::HasSubstr("embedding 1: [engine] the prompt is empty"));
  r.prompts[1] = some_ids(257);
  EXPECT_FALSE(engine->embed(r).ok());
  r.prompts[1] = {61};
  EXPECT_FALSE(engine->embed(r).ok());
  EXPECT_FALSE(engine->embed({}).ok());
  r.prompts = {some_ids(200)};
  r.deadline_ms = 0.001;
  EXPECT_EQ(engine->embed(r).error().code, ErrorCode::kResourceExhausted);
  r.deadline_ms = 0;
  std::atomic<int> rung{0};
  r.on_done = [&] { ++rung; };
  auto pending = engine->submit(r);
  ASSERT_TRUE(pending.ok());
  const auto waited = pending->wait();
  ASSERT_TRUE(waited.ok());
  EXPECT_TRUE(pending->done());
  EXPECT_EQ(waited->rows, plain.embed(r).rows);
  r.prompts.assign(50, some_ids(256, 9));  // long enough that it is not done before it is cancelled
  for (size_t i = 0; i < 50; ++i) r.prompts[i][0] = static_cast<int32_t>(i);
  auto cancelled = engine->submit(r);
  ASSERT_TRUE(cancelled.ok());
  cancelled->cancel();
  EXPECT_EQ(cancelled->wait().error().code, ErrorCode::kCancelled);
  { ASSERT_TRUE(engine->submit(r).ok()); }  // dropped
  EXPECT_TRUE(engine->check_idle(true).ok());
  EXPECT_EQ(rung.load(), 3);
  EmbedRequest text;
  text.texts = {"once upon a time", "a time"};
  const auto of_text = engine->embed(text);
  ASSERT_TRUE(of_text.ok()) << of_text.error().message;
  EXPECT_EQ(of_text->rows.size(), 2u);
  EXPECT_TRUE(engine->check_idle(true).ok());
}

TEST(Engine, PrefixesOutliveARestart) {
  const auto dir = std::filesystem::temp_directory_path() / ("minfer_kv_" + std::to_string(std::random_device()()));
  EngineOptions o = small_options();
  o.kv_store = dir.string();
  const Request r = request_of(some_ids(100), 20);
  const Response want = plain(r);
  for (int i = 0; i < 3; ++i) {
    const auto engine = engine_of(o);
    const auto got = engine->run(r);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->cached_tokens, i == 0 ? 0 : 96);
    EXPECT_EQ(difference(got->choices[0], want.choices[0]), "");
  }
  // Pages that leave the cache come back as well.
  o.kv_memory = kv_bytes_per_token(open_golden("llama")->hparams(), DType::kF32, DType::kF32) * 256;
  {
    const auto engine = engine_of(o);
    for (int32_t i = 1; i < 5; ++i) ASSERT_TRUE(engine->run(request_of(some_ids(200, i), 4)).ok());
    const auto again = engine->run(request_of(some_ids(200, 1), 4));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->cached_tokens, 192);
    EXPECT_EQ(difference(again->choices[0], plain(request_of(some_ids(200, 1), 4)).choices[0]), "");
    EXPECT_GT(engine->stats().kv_store_read, 0);
    EXPECT_TRUE(engine->check_idle().ok());
  }
  // A damaged page is refused, and the answer is right all the same.
  for (const auto& e : std::filesystem::recursive_directory_iterator(dir)) {
    if (e.path().extension() == ".kv") std::filesystem::resize_file(e.path(), 1000);
  }
  {
    const auto engine = engine_of(o);
    const auto got = engine->run(r);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->cached_tokens, 0);
    EXPECT_EQ(difference(got->choices[0], want.choices[0]), "");
    EXPECT_GT(engine->stats().kv_store_refused, 0);
  }
  // Another cache type is another store.
  o.cache_type_k = "f16";
  {
    const auto engine = engine_of(o);
    const auto got = engine->run(r);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->cached_tokens, 0);
    EXPECT_EQ(engine->stats().kv_store_refused, 0);
  }
  std::filesystem::remove_all(dir);
}

TEST(Engine, ClosingEndsEverything) {
  auto engine = engine_of(small_options());
  std::vector<Stream> streams;
  for (int i = 0; i < 8; ++i) streams.push_back(std::move(engine->submit(request_of(some_ids(30, i), 200))).value());
  engine.reset();
  for (auto& s : streams) {
    const auto got = s.wait();
    ASSERT_TRUE(got.ok());
    EXPECT_THAT(got->choices[0].finish, ::testing::AnyOf(FinishReason::kCancelled, FinishReason::kLength));
  }
}

TEST(Engine, RequestsAreCountedAndBounded) {
  EngineOptions o = small_options();
  o.max_requests = 2;
  const auto engine = engine_of(o);
  auto a = engine->submit(request_of(some_ids(30), 200)), b = engine->submit(request_of(some_ids(30, 1), 200));
  ASSERT_TRUE(a.ok() && b.ok());
  const auto c = engine->submit(request_of(some_ids(30, 2), 200));
  if (!c.ok()) {  // unless one has ended already
    EXPECT_EQ(c.error().code, ErrorCode::kResourceExhausted);
    EXPECT_NE(c.error().message.find("2 requests are unfinished"), std::string::npos);
  }
  a->cancel();
  b->cancel();
  ASSERT_TRUE(a->wait().ok() && b->wait().ok());
  EXPECT_TRUE(engine->run(request_of(some_ids(5), 2)).ok());
}

TEST(Engine, WhatCannotBeAskedIsRefusedAndNeverWaitedFor) {
  const auto engine = engine_of(small_options());
  ASSERT_NE(engine, nullptr);
  Request r;
  r.prompt = some_ids(8, 1);
  r.max_tokens = 3;
  // A stream that was moved from.
  auto first = engine->submit(r);
  ASSERT_TRUE(first.ok());
  Stream second = std::move(*first);
  EXPECT_TRUE(first->done());
  EXPECT_FALSE(first->next().ok());
  EXPECT_FALSE(first->poll().ok());
  EXPECT_FALSE(first->wait().ok());
  first->cancel();
  EXPECT_TRUE(second.wait().ok());
  EXPECT_FALSE(second.wait().ok());  // once
  // What waits for the engine, on its own thread.
  Request inside = r;
  std::vector<std::string> errors;
  bool submitted = false;
  inside.on_event = [&](const Event&) {
    const auto ran = engine->run(r);
    errors.push_back(ran.ok() ? "" : ran.error().message);
    const Status idle = engine->check_idle();
    errors.push_back(idle.ok() ? "" : idle.error().message);
    EXPECT_FALSE(engine->inspect([](Runner&) {}));
    submitted = engine->submit(r).ok();
    return true;
  };
  EXPECT_TRUE(engine->run(inside).ok());
  EXPECT_TRUE(submitted);
  ASSERT_FALSE(errors.empty());
  for (const std::string& e : errors) EXPECT_NE(e.find("waits for the engine"), std::string::npos) << e;
  Request odd = r;
  odd.logprobs_of = static_cast<LogprobsOf>(9);
  EXPECT_FALSE(engine->submit(odd).ok());
  EmbedRequest embed;
  embed.prompts = {some_ids(4, 1)};
  embed.pooling = static_cast<Pooling>(9);
  EXPECT_FALSE(engine->embed(embed).ok());
  EXPECT_TRUE(engine->check_idle(true).ok());
}

}  // namespace
}  // namespace minfer
