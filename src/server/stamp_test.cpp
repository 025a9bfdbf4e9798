// Stamps: written, read back exactly, and compared.
#include "server/stamp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "chat/json.h"

namespace minfer {
namespace {

using Json = nlohmann::ordered_json;

Request request() {
  Request r;
  r.prompt = {1, 2, 300};
  r.n = 2;
  r.max_tokens = 9;
  r.stop = {"\n\n", "\u00fc"};
  r.stop_ids = {7};
  r.ignore_eos = true;
  SamplingParams& p = r.sampling;
  p.logit_bias = {{5, -INFINITY}, {3, 0.1f}};
  p.temperature = 0.1f;  // no double has this value
  p.top_p = 1.0f / 3.0f;
  p.seed = UINT64_MAX - 3;
  p.top_k = 17;
  p.dry_multiplier = 0.5f;  // or its breakers mean nothing
  p.dry_breakers = {{1, 2}, {3}};
  p.samplers = {SamplerStage::kTopK, SamplerStage::kTemperature};
  return r;
}

std::vector<Choice> choices() {
  Choice a, b;
  a.ids = {4, 5}, a.text = std::string("x");
  b.ids = {6}, b.text = std::string("y"), b.finish = FinishReason::kLength;
  return {a, b};
}

Result<Stamp> read(const Json& j) { return read_stamp(MINFER_TRY(chat::parse_json(j.dump()))); }

TEST(Stamp, ComesBackExactly) {
  const Json j = make_stamp({"abc", "f16", "q8_0"}, request(), choices());
  const auto s = read(j);
  ASSERT_TRUE(s.ok()) << s.error().message;
  EXPECT_EQ(make_stamp(s->model, s->request, choices()).dump(), j.dump());
  EXPECT_EQ(s->request.sampling.seed, UINT64_MAX - 3);
  EXPECT_EQ(s->request.sampling.top_p, 1.0f / 3.0f);
  EXPECT_EQ(s->request.sampling.logit_bias, request().sampling.logit_bias);
  EXPECT_EQ(s->request.stop, request().stop);
  EXPECT_FALSE(first_difference(*s, choices()).has_value());
}

// All of Request, of it all that decides an answer's bits. A field that is added does not compile until it is named
// here.
auto deciding_fields(Request& r) {
  auto& [prompt, text, parse_special, sampling, n, best_of, max_tokens, min_tokens, stop, stop_ids, ignore_eos,
         show_control, mask, logprobs, top_logprobs, logprobs_of, prompt_logprobs, priority, client, deadline_ms,
         speculate, on_prompt, on_event] = r;
  auto& [logit_bias, repeat_penalty, repeat_last_n, frequency_penalty, presence_penalty, dry_multiplier, dry_base,
         dry_allowed_length, dry_penalty_last_n, dry_breakers, top_n_sigma, top_k, typical_p, top_p, min_p,
         xtc_probability, xtc_threshold, min_keep, temperature, dynatemp_range, dynatemp_exponent, adaptive_target,
         adaptive_decay, mirostat, mirostat_tau, mirostat_eta, samplers, seed] = sampling;
  return std::tie(prompt, n, best_of, max_tokens, min_tokens, stop, stop_ids, ignore_eos, show_control, logit_bias,
                  repeat_penalty, repeat_last_n, frequency_penalty, presence_penalty, dry_multiplier, dry_base,
                  dry_allowed_length, dry_penalty_last_n, dry_breakers, top_n_sigma, top_k, typical_p, top_p, min_p,
                  xtc_probability, xtc_threshold, min_keep, temperature, dynatemp_range, dynatemp_exponent,
                  adaptive_target, adaptive_decay, mirostat, mirostat_tau, mirostat_eta, samplers, seed);
}

void change(float& x) { x = 0.7f; }
void change(int32_t& x) { x += 2; }
void change(uint64_t& x) { x = UINT64_MAX; }
void change(bool& x) { x = !x; }
void change(std::vector<int32_t>& x) { x.push_back(8); }
void change(std::vector<std::string>& x) { x.push_back("\u00fc\n"); }
void change(std::vector<std::pair<int32_t, float>>& x) { x = {{5, -INFINITY}, {3, 0.1f}}; }
void change(std::vector<std::vector<int32_t>>& x) { x = {{1, 2}, {3}}; }
void change(std::vector<SamplerStage>& x) { x = {SamplerStage::kTopK}; }

TEST(Stamp, HoldsEveryFieldThatDecidesTheAnswer) {
  const auto walk = [](auto index) {
    constexpr size_t kField = decltype(index)::value;
    Request r, plain;
    r.prompt = {1, 2};
    r.sampling.dry_multiplier = 0.5f;  // or its breakers mean nothing
    plain = r;
    auto& field = std::get<kField>(deciding_fields(r));
    change(field);
    ASSERT_NE(field, std::get<kField>(deciding_fields(plain))) << kField;
    auto s = read(make_stamp({"abc", "f16", "q8_0"}, r, std::vector<Choice>(static_cast<size_t>(r.n))));
    ASSERT_TRUE(s.ok()) << kField << ": " << s.error().message;
    EXPECT_EQ(deciding_fields(s->request), deciding_fields(r)) << kField;
    Request again = replay_request(*s);
    EXPECT_EQ(deciding_fields(again), deciding_fields(r)) << kField;
  };
  Request r;
  [&]<size_t... kField>(std::index_sequence<kField...>) { (walk(std::integral_constant<size_t, kField>()), ...); }
  (std::make_index_sequence<std::tuple_size_v<decltype(deciding_fields(r))>>());
}

TEST(Stamp, WhereOnlyTheBestCameBackTheContextsLimitIsKept) {
  Request r;
  r.prompt = {1, 2, 3};
  r.n = 1, r.best_of = 4;
  const auto limit = [&](int32_t n_ctx) {
    auto s = read(make_stamp({"abc", "f16", "f16", n_ctx}, r, std::vector<Choice>(1)));
    return s.ok() ? s->request.max_tokens : -2;
  };
  EXPECT_EQ(limit(10), 8);  // the last token needs no position
  r.max_tokens = 5;
  EXPECT_EQ(limit(10), 5);
  r.max_tokens = -1, r.best_of = 1;
  EXPECT_EQ(limit(10), -1);  // the one answer says where it ended
}

TEST(Stamp, DamageIsNamed) {
  const Json good = make_stamp({"abc", "f16", "f16"}, request(), choices());
  for (const auto& [key, value] : good.items()) {
    Json j = good;
    j.erase(key);
    const auto missing = read(j);
    ASSERT_FALSE(missing.ok()) << key;
    EXPECT_THAT(missing.error().message, testing::HasSubstr("stamp"));
    j = good;
    j[key] = nullptr;
    EXPECT_FALSE(read(j).ok()) << key;
    j[key] = Json::object({{"a", 1}});
    EXPECT_FALSE(read(j).ok()) << key;
  }
  const auto fails = [&](const char* key, Json value, const char* says) {
    Json j = good;
    j[key] = std::move(value);
    const auto r = read(j);
    ASSERT_FALSE(r.ok()) << key;
    EXPECT_THAT(r.error().message, testing::HasSubstr(says)) << key;
  };
  fails("numerics", 999, "stamp.numerics: found 999");
  fails("prompt_ids", {1, 2}, "stamp.prompt_sha256");
  fails("token_ids", {{1}}, "found 1 answers");
  fails("token_ids", {{1}, {-1}}, "stamp.token_ids: found -1");
  fails("finish", {"stop", "never"}, "stamp.finish");
  Json j = good;
  j["extra"] = 1;
  EXPECT_FALSE(read(j).ok());
  EXPECT_FALSE(read(Json::array({1})).ok());
}

TEST(Stamp, FirstDifference) {
  const auto s = read(make_stamp({"abc", "f16", "f16"}, request(), choices()));
  ASSERT_TRUE(s.ok());
  auto again = choices();
  again[1].ids = {9};
  auto d = first_difference(*s, again);
  ASSERT_TRUE(d.has_value());
  EXPECT_EQ(d->choice, 1);
  EXPECT_EQ(d->token, 0);
  EXPECT_EQ(d->recorded, 6);
  EXPECT_EQ(d->again, 9);
  again = choices();
  again[0].ids = {4};
  d = first_difference(*s, again);
  EXPECT_EQ(d->token, 1);
  EXPECT_EQ(d->recorded, 5);
  EXPECT_FALSE(d->again.has_value());
  again = choices();
  again[0].text = std::string("z");
  d = first_difference(*s, again);
  ASSERT_TRUE(d.has_value());
  EXPECT_EQ(d->token, -1);
}

TEST(Stamp, AnswersThatTheContextCutAreReplayedByLength) {
  auto c = choices();
  c[1].finish = FinishReason::kContext;
  Request r = request();
  r.max_tokens = -1;
  const auto s = read(make_stamp({"abc", "f16", "f16"}, r, c));
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(replay_request(*s).max_tokens, 1);
  EXPECT_EQ(replay_request(*read(make_stamp({"abc", "f16", "f16"}, r, choices()))).max_tokens, -1);
}

}  // namespace
}  // namespace minfer
