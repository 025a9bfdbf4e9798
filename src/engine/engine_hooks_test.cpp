// Looking inside an engine: steps, prompts as they are read, traces, dumps, plans changed; and that none of it changes
// a bit.
#include <gtest/gtest.h>

#include <set>

#include "engine/runner.h"
#include "engine/testing/plain_decode.h"
#include "minfer/engine.h"
#include "trace/tracer.h"

namespace minfer {
namespace {

using testing::difference;
using testing::open_golden;

EngineOptions small_options() {
  EngineOptions o;
  o.n_threads = 1, o.ctx = 256, o.max_running = 2, o.chunk = 16;
  return o;
}

std::unique_ptr<Engine> engine_of(const EngineOptions& options) {
  auto e = Engine::create(open_golden("llama"), options);
  if (!e.ok()) ADD_FAILURE() << e.error().message;
  return e.ok() ? std::move(e).value() : nullptr;
}

Request request_of(int32_t n_prompt, int32_t max_tokens) {
  Request r;
  for (int32_t i = 0; i < n_prompt; ++i) r.prompt.push_back(3 + i * 7 % 50);
  r.max_tokens = max_tokens;
  r.ignore_eos = true;
  r.sampling.temperature = 0;
  return r;
}

struct Names final : NodeObserver {
  std::set<std::string> seen;
  std::string fails_at;
  Status on_value(const std::string& name, const std::string&, int, const TensorView&) override {
    seen.insert(name);
    if (name == fails_at) return Error{ErrorCode::kIo, "no room for " + name};
    return {};
  }
};

TEST(EngineHooks, SeeEverythingAndChangeNothing) {
  const auto want = engine_of(small_options())->run(request_of(40, 12));
  ASSERT_TRUE(want.ok()) << want.error().message;
  Tracer tracer;
  Names names;
  std::vector<StepInfo> steps;
  EngineOptions o = small_options();
  o.tracer = &tracer, o.observer = &names;
  o.on_step = [&](const StepInfo& s) { steps.push_back(s); };
  o.disabled_passes = {"fuse_rope_store"};
  {
    const auto engine = engine_of(o);
    ASSERT_NE(engine, nullptr);
    const auto got = engine->run(request_of(40, 12));
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(difference(got->choices[0], want->choices[0]), "");
    int32_t prompt = 0, draft = 0;
    for (const StepInfo& s : steps) {
      prompt += s.prompt_tokens, draft += s.draft_tokens;
      EXPECT_GT(s.forward_ms, 0);
      EXPECT_GE(s.total_ms, s.forward_ms);
    }
    EXPECT_EQ(prompt, 40);
    EXPECT_EQ(steps[0].prompt_tokens, 16);
    EXPECT_EQ(steps[0].streams, 0);
    EXPECT_EQ(steps.back().streams, 1);
    EXPECT_EQ(draft, got->draft_tokens);
    EXPECT_EQ(static_cast<int64_t>(steps.size()), engine->stats().steps);
    size_t n_ops = 0;
    EXPECT_TRUE(engine->inspect([&](Runner& r) { n_ops = (*r.plan_for(1, 1, 1, 0))->steps().size(); }));
    EXPECT_GT(n_ops, 10u);
  }
  EXPECT_EQ(tracer.steps().size(), steps.size());
  EXPECT_GT(tracer.nodes().size(), 10 * steps.size());
  EXPECT_GT(names.seen.size(), 10u);
}

TEST(EngineHooks, AnObserverThatFailsEndsTheRequest) {
  Names names;
  EngineOptions o = small_options();
  o.observer = &names;
  const auto engine = engine_of(o);
  ASSERT_TRUE(engine->run(request_of(8, 2)).ok());
  names.fails_at = *names.seen.begin();  // the engine is idle
  const auto failed = engine->run(request_of(9, 2));
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("no room for"), std::string::npos) << failed.error().message;
  names.fails_at.clear();
  EXPECT_TRUE(engine->run(request_of(9, 2)).ok());
  EXPECT_TRUE(engine->check_idle(true).ok());
}

TEST(EngineHooks, APromptIsReportedAsItIsRead) {
  const auto engine = engine_of(small_options());
  std::vector<std::pair<int64_t, int64_t>> seen;
  Request r = request_of(40, 3);
  r.on_prompt = [&](int64_t done, int64_t total) {
    seen.emplace_back(done, total);
    return true;
  };
  ASSERT_TRUE(engine->run(r).ok());
  using Seen = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(seen, (Seen{{16, 40}, {32, 40}, {40, 40}}));
  seen.clear();
  ASSERT_TRUE(engine->run(r).ok());
  EXPECT_EQ(seen, (Seen{{40, 40}}));  // a page came from the cache
  Request stopped = request_of(90, 3);
  stopped.prompt[0] = 60;
  stopped.on_prompt = [&](int64_t done, int64_t) { return done < 32; };
  const auto cancelled = engine->run(stopped);
  ASSERT_TRUE(cancelled.ok());
  EXPECT_EQ(cancelled->choices[0].finish, FinishReason::kCancelled);
  EXPECT_TRUE(cancelled->choices[0].ids.empty());
  EXPECT_TRUE(engine->check_idle(true).ok());
}

TEST(EngineHooksDeathTest, AnExceptionOfTheCallersEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const auto engine = engine_of(small_options());
        Request r = request_of(8, 2);
        r.on_event = [](const Event&) -> bool { throw 1; };
        (void)engine->run(std::move(r)).ok();
      },
      "");
}

}  // namespace
}  // namespace minfer
