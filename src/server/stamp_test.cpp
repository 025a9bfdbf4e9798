// Stamps: written, read back exactly, and compared.
#include "server/stamp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "chat/json.h"
#include "server/openai/sampling_fields.h"

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
  a.ids = {4, 5}, a.text = "x";
  b.ids = {6}, b.text = "y", b.finish = FinishReason::kLength;
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

// A field that is left out of the table would be lost in every stamp: change each byte of a number and look.
TEST(Stamp, HoldsEveryNumberOfTheSamplingParameters) {
  const std::string plain = openai::stamped_sampling({}).dump();
  const auto differs = [&](auto field, auto value) {
    SamplingParams p;
    p.*field = value;
    return openai::stamped_sampling(p).dump() != plain;
  };
  using P = SamplingParams;
  for (auto f : {&P::repeat_penalty, &P::frequency_penalty, &P::presence_penalty, &P::dry_multiplier, &P::dry_base,
                 &P::top_n_sigma, &P::typical_p, &P::top_p, &P::min_p, &P::xtc_probability, &P::xtc_threshold,
                 &P::temperature, &P::dynatemp_range, &P::dynatemp_exponent, &P::adaptive_target, &P::adaptive_decay,
                 &P::mirostat_tau, &P::mirostat_eta}) {
    EXPECT_TRUE(differs(f, 0.625f));
  }
  for (auto f :
       {&P::repeat_last_n, &P::dry_allowed_length, &P::dry_penalty_last_n, &P::top_k, &P::min_keep, &P::mirostat}) {
    EXPECT_TRUE(differs(f, 1));
  }
  EXPECT_TRUE(differs(&P::seed, uint64_t{1}));
  // Three vectors, 24 numbers of four bytes and the seed: a new field needs a row in sampling_fields.cpp and here.
  EXPECT_EQ(sizeof(P), 3 * sizeof(std::vector<int>) + 24 * 4 + 8);
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
  again[0].text = "z";
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
