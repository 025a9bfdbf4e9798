// The engine with a draft model: every answer is what it is without, whatever draws it and however good the guesses
// are; good ones come true, bad ones are left off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/testing/golden_variant.h"
#include "engine/testing/plain_decode.h"
#include "minfer/engine.h"

namespace minfer {
namespace {

using testing::difference;
using testing::golden_path;
using testing::GoldenVariant;
using testing::open_golden;

EngineOptions options_of(const std::string& draft) {
  EngineOptions o;
  o.n_threads = 1, o.ctx = 256, o.max_running = 8;
  o.cache_type_k = o.cache_type_v = "f16";
  o.speculation = 0;
  o.draft_model = draft;
  return o;
}

std::unique_ptr<Engine> engine_of(const EngineOptions& options) {
  auto e = Engine::create(open_golden("llama"), options);
  if (!e.ok()) ADD_FAILURE() << e.error().message;
  return e.ok() ? std::move(e).value() : nullptr;
}

std::vector<int32_t> some_ids(int32_t n, int32_t salt = 0) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < n; ++i) ids.push_back(3 + (i * 7 + salt * 13 + i * i * salt) % 50);
  return ids;
}

Response plain(const Request& r) {
  const auto model = open_golden("llama");
  return testing::PlainDecoder(*model, DType::kF16, DType::kF16, 256).answer(r);
}

// One request per way to draw and to end.
std::vector<Request> all_kinds() {
  std::vector<Request> out;
  const auto add = [&](float temperature, const std::function<void(Request&)>& change) {
    Request r;
    r.prompt = some_ids(10 + 3 * static_cast<int32_t>(out.size()), static_cast<int32_t>(out.size() % 5));
    r.max_tokens = 40;
    r.ignore_eos = true;
    r.sampling.temperature = temperature;
    r.sampling.seed = 77 + out.size();
    change(r);
    out.push_back(std::move(r));
  };
  add(0, [](Request&) {});
  add(1, [](Request&) {});
  add(0.7f, [](Request& r) { r.sampling.top_k = 5, r.sampling.top_p = 0.9f; });
  add(1, [](Request& r) { r.sampling.mirostat = 1, r.sampling.mirostat_tau = 3; });
  add(1, [](Request& r) { r.sampling.mirostat = 2, r.sampling.mirostat_tau = 2; });
  add(1, [](Request& r) { r.sampling.adaptive_target = 0.3f; });
  add(1, [](Request& r) { r.sampling.dry_multiplier = 0.8f, r.sampling.dry_allowed_length = 1; });
  add(0, [](Request& r) { r.sampling.repeat_penalty = 1.3f, r.sampling.repeat_last_n = 16; });
  add(1, [](Request& r) { r.sampling.frequency_penalty = 0.5f, r.sampling.presence_penalty = 0.2f; });
  add(1, [](Request& r) { r.sampling.xtc_probability = 0.5f; });
  add(1, [](Request& r) { r.logprobs = true, r.top_logprobs = 3; });
  add(1, [](Request& r) { r.top_logprobs = 3, r.logprobs_of = LogprobsOf::kSampled; });
  add(1, [](Request& r) { r.n = 2, r.best_of = 4; });
  add(1, [](Request& r) { r.stop = {"w7", "w11 w"}; });
  add(1, [](Request& r) { r.ignore_eos = false, r.stop_ids = {9, 21}, r.min_tokens = 12; });
  add(1, [](Request& r) { r.n = 3; });
  add(0, [](Request& r) { r.prompt_logprobs = true; });
  add(1, [](Request& r) { r.max_tokens = -1; });  // until the context ends
  add(1, [](Request& r) {
    r.mask = [](int32_t, std::span<const int32_t> generated, std::span<uint32_t> allowed) -> Status {
      std::fill(allowed.begin(), allowed.end(), generated.size() % 2 == 0 ? 0xaaaaaaaau : 0x55555555u);
      return {};
    };
  });
  return out;
}

EngineStats answer_all(const std::string& draft) {
  const auto engine = engine_of(options_of(draft));
  const std::vector<Request> requests = all_kinds();
  std::vector<Stream> streams;
  for (const Request& r : requests) {
    auto s = engine->submit(r);
    EXPECT_TRUE(s.ok());
    streams.push_back(std::move(s).value());
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto got = streams[i].wait();
    EXPECT_TRUE(got.ok());
    const Response want = plain(requests[i]);
    for (size_t c = 0; c < want.choices.size(); ++c)
      EXPECT_EQ(difference(got->choices[c], want.choices[c]), "") << "request " << i << ", choice " << c;
    EXPECT_EQ(difference(got->prompt_logprobs, want.prompt_logprobs), "") << i;
  }
  EXPECT_TRUE(engine->check_idle().ok());
  EXPECT_TRUE(engine->check_idle(/*clear=*/true).ok());
  return engine->stats();
}

TEST(EngineDraft, TheSameModelGuessesRight) {
  const EngineStats s = answer_all(golden_path("llama"));
  EXPECT_GT(s.draft_model_tokens, 30);
  // But for the masked request, whose mask is not asked for guesses.
  EXPECT_GT(s.draft_model_tokens_accepted, s.draft_model_tokens / 2);
  EXPECT_EQ(s.draft_model_tokens, s.draft_tokens);
  EXPECT_EQ(s.draft_failures, 0);
  EXPECT_GT(s.draft_ms, 0);
  EXPECT_GT(s.draft_kv_bytes, 0);
}

TEST(EngineDraft, AnotherModelGuessesLessAndChangesNothing) {
  const GoldenVariant other("llama");
  const EngineStats s = answer_all(other.path());
  EXPECT_GT(s.draft_model_tokens, 0);
  EXPECT_LT(s.draft_model_tokens_accepted, s.draft_model_tokens);
  EXPECT_EQ(s.draft_failures, 0);
}

TEST(EngineDraft, ADraftMayHaveAShorterContext) {
  const GoldenVariant shorter("llama", false,
                              [](gguf::MetadataBuilder& m) { m.set("llama.context_length", uint32_t{48}); });
  const EngineStats s = answer_all(shorter.path());
  EXPECT_GT(s.draft_model_tokens_accepted, 0);
}

TEST(EngineDraft, GuessesThatNeverComeTrueStop) {
  const GoldenVariant other("llama");
  const auto engine = engine_of(options_of(other.path()));
  Request r;
  r.prompt = some_ids(8);
  r.max_tokens = 240;
  r.ignore_eos = true;
  r.sampling.temperature = 2;
  r.sampling.logit_bias = {{7, 30.0f}};
  r.mask = [](int32_t, std::span<const int32_t>, std::span<uint32_t> allowed) -> Status {
    allowed[0] &= ~(1u << 7);  // the one id that is guessed
    return {};
  };
  const auto got = engine->run(r);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(difference(got->choices[0], plain(r).choices[0]), "");
  EXPECT_EQ(got->draft_tokens_accepted, 0);
  EXPECT_GT(got->draft_tokens, 0);
  EXPECT_LT(got->draft_tokens, 200);
  r.speculate = false;
  EXPECT_EQ(engine->run(r)->draft_tokens, 0);
}

TEST(EngineDraft, ASecondTurnGoesOn) {
  const auto engine = engine_of(options_of(golden_path("llama")));
  Request r;
  r.prompt = some_ids(100);
  r.max_tokens = 30;
  r.ignore_eos = true;
  r.sampling.temperature = 0;
  const auto one = engine->run(r);
  ASSERT_TRUE(one.ok());
  EXPECT_GT(one->draft_tokens_accepted, 0);
  r.prompt.insert(r.prompt.end(), one->choices[0].ids.begin(), one->choices[0].ids.end());
  r.max_tokens = 8;
  const auto two = engine->run(r);
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(difference(two->choices[0], plain(r).choices[0]), "");
}

TEST(EngineDraft, OptionsThatMakeNoSense) {
  struct Case {
    std::function<void(EngineOptions&)> change;
    const char* says;
  };
  const std::vector<Case> cases = {
      {[](EngineOptions& o) { o.draft_tokens = 0; }, "draft_tokens: found 0, expected 1 to 64"},
      {[](EngineOptions& o) { o.draft_kv_memory = -1; }, "draft_kv_memory: found -1"},
      {[](EngineOptions& o) { o.draft_kv_memory = 5; }, "kv_memory of 5 bytes"},
      {[](EngineOptions& o) { o.draft_model = "no/such/file.gguf"; }, "draft model 'no/such/file.gguf': "},
      {[](EngineOptions& o) { o.draft_model = golden_path("gemma3"); },
       "a vocabulary of 53 tokens, expected the 61 of the model"},
  };
  for (const Case& c : cases) {
    EngineOptions o = options_of(golden_path("llama"));
    c.change(o);
    const auto e = Engine::create(open_golden("llama"), o);
    ASSERT_FALSE(e.ok()) << c.says;
    EXPECT_THAT(e.error().message, ::testing::HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace minfer
