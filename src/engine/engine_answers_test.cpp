// What the answers of an engine are: several of one prompt, their log-probabilities, masks, stops, guesses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/testing/plain_decode.h"
#include "engine/testing/small_engine.h"

namespace minfer {
namespace {

using testing::difference;
using testing::engine_of;
using testing::plain;
using testing::request_of;
using testing::small_options;
using testing::some_ids;

TEST(EngineAnswers, ChoicesShareThePromptAndDrawLikeRequestsOfTheirOwn) {
  EngineOptions o = small_options();
  const auto engine = engine_of(o);
  Request r = request_of(some_ids(100), 12);
  r.n = 4;
  r.sampling.temperature = 1.5f, r.sampling.seed = 77;
  const auto all = engine->run(r);
  ASSERT_TRUE(all.ok()) << all.error().message;
  ASSERT_EQ(all->choices.size(), 4u);
  EXPECT_EQ(all->generated_tokens, 48);
  for (uint64_t c = 0; c < 4; ++c) {
    Request one = r;
    one.n = 1, one.sampling.seed = 77 + c;
    EXPECT_EQ(difference(all->choices[c], plain(one).choices[0]), "") << c;
  }
  EXPECT_NE(all->choices[0].ids, all->choices[1].ids);
  // 100 prompt tokens, and 4 of them again for each further choice.
  EXPECT_EQ(engine->stats().tokens_prefilled, 100 + 3 * 4);
}

TEST(EngineAnswers, LogprobsAreThoseOfTheModel) {
  const auto engine = engine_of(small_options());
  Request r = request_of(some_ids(40), 6);
  r.logprobs = r.prompt_logprobs = true, r.top_logprobs = 3;
  r.sampling.temperature = 1;
  ASSERT_TRUE(engine->run(request_of(some_ids(40), 1)).ok());  // a prefix that must not be used
  const auto got = engine->run(r);
  ASSERT_TRUE(got.ok()) << got.error().message;
  const Response want = plain(r);
  EXPECT_EQ(difference(got->choices[0], want.choices[0]), "");
  EXPECT_EQ(difference(got->prompt_logprobs, want.prompt_logprobs), "");
  EXPECT_EQ(got->prompt_logprobs.size(), 39u);
  double sum = 0;
  Request all = request_of(some_ids(40), 1);
  all.top_logprobs = 61;
  const auto row = engine->run(all);
  ASSERT_TRUE(row.ok());
  for (const auto& [id, logprob] : row->choices[0].logprobs[0].top) sum += std::exp(static_cast<double>(logprob));
  EXPECT_NEAR(sum, 1, 1e-5);  // 61 f32 logarithms, each right to some 1e-7
}

TEST(EngineAnswers, LogprobsAreThoseOfWhatWasDrawnFrom) {
  const auto engine = engine_of(small_options());
  Request r = request_of(some_ids(40), 12);
  r.top_logprobs = 61, r.logprobs_of = LogprobsOf::kSampled;
  r.sampling.temperature = 2, r.sampling.top_k = 7, r.sampling.top_p = 1, r.sampling.min_p = 0;
  Request whole = r;
  whole.logprobs_of = LogprobsOf::kModel;
  const auto got = engine->run(r), model = engine->run(whole);
  ASSERT_TRUE(got.ok() && model.ok());
  EXPECT_EQ(difference(got->choices[0], plain(r).choices[0]), "");
  EXPECT_EQ(got->choices[0].ids, model->choices[0].ids);
  for (size_t i = 0; i < 12; ++i) {
    // By hand: of the model's seven likeliest, the square roots of their probabilities over their sum.
    const auto& top = got->choices[0].logprobs[i].top;
    const auto& row = model->choices[0].logprobs[i].top;
    ASSERT_EQ(top.size(), 7u);
    double sum = 0;
    for (size_t k = 0; k < 7; ++k) sum += std::exp(static_cast<double>(row[k].second) / 2);
    bool drawn = false;
    for (size_t k = 0; k < 7; ++k) {
      EXPECT_EQ(top[k].first, row[k].first);
      EXPECT_NEAR(top[k].second, static_cast<double>(row[k].second) / 2 - std::log(sum), 1e-5);
      if (top[k].first != got->choices[0].ids[i]) continue;
      EXPECT_EQ(top[k].second, got->choices[0].logprobs[i].logprob);
      drawn = true;
    }
    EXPECT_TRUE(drawn);
  }
  r.sampling.temperature = 0;
  const auto greedy = engine->run(r);
  ASSERT_TRUE(greedy.ok());
  for (size_t i = 0; i < 12; ++i) {
    const TokenLogprobs& p = greedy->choices[0].logprobs[i];
    EXPECT_EQ(p.logprob, 0);
    ASSERT_EQ(p.top.size(), 1u);
    EXPECT_EQ(p.top[0], std::pair(greedy->choices[0].ids[i], 0.0f));
  }
}

TEST(EngineAnswers, TheBestOfManyComeBack) {
  const auto engine = engine_of(small_options());
  Request r = request_of(some_ids(100), 12);
  r.ignore_eos = false;
  r.sampling.temperature = 1.5f, r.sampling.seed = 77;
  r.n = 2, r.best_of = 6;
  r.stop_ids = {5, 9, 14, 22};  // answers of different lengths
  std::vector<Event> events;
  r.on_event = [&](const Event& e) {
    events.push_back(e);
    return true;
  };
  const auto got = engine->run(r);
  ASSERT_TRUE(got.ok()) << got.error().message;
  ASSERT_EQ(got->choices.size(), 2u);
  EXPECT_EQ(engine->stats().tokens_prefilled, 100 + 5 * 4);  // the prompt is shared
  EXPECT_EQ(difference(got->choices[0], plain(r).choices[0]), "");
  EXPECT_EQ(difference(got->choices[1], plain(r).choices[1]), "");
  // By hand, of requests of their own: the end token's log-probability is had by not letting it end.
  std::vector<std::pair<double, uint64_t>> means;
  std::vector<Choice> alone;
  int64_t generated = 0;
  for (uint64_t c = 0; c < 6; ++c) {
    Request one = r;
    one.n = 1, one.best_of = 0, one.sampling.seed = 77 + c, one.on_event = nullptr;
    alone.push_back(engine->run(one)->choices[0]);
    generated += static_cast<int64_t>(alone.back().ids.size());
    one.ignore_eos = true, one.stop_ids.clear(), one.logprobs = true;
    const auto on = engine->run(one)->choices[0].logprobs;
    const size_t n = std::min<size_t>(alone.back().ids.size() + 1, 12);
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += static_cast<double>(on[i].logprob);
    means.emplace_back(-sum / static_cast<double>(n), c);
  }
  EXPECT_EQ(got->generated_tokens, generated);
  std::sort(means.begin(), means.end());
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(difference(got->choices[i], alone[means[i].second]), "") << i;
  ASSERT_EQ(events.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(events[i].choice, static_cast<int32_t>(i));
    EXPECT_EQ(events[i].ids, got->choices[i].ids);
    EXPECT_EQ(events[i].text, got->choices[i].text);
    EXPECT_EQ(events[i].finish, got->choices[i].finish);
  }
  r.max_tokens = 0;  // nothing is drawn: there are no means
  EXPECT_EQ(engine->run(r)->choices.size(), 2u);
  r.on_event = nullptr, r.max_tokens = 100;
  auto dropped = engine->submit(r);
  ASSERT_TRUE(dropped.ok());
  dropped->cancel();
  const auto cancelled = dropped->wait();
  ASSERT_TRUE(cancelled.ok());
  EXPECT_EQ(cancelled->choices.size(), 2u);
}

TEST(EngineAnswers, APromptMayBeOnlyRead) {
  const auto engine = engine_of(small_options());
  Request r = request_of(some_ids(40), 0);
  r.prompt_logprobs = true;
  const auto got = engine->run(r);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_TRUE(got->choices[0].ids.empty());
  EXPECT_EQ(got->choices[0].finish, FinishReason::kLength);
  EXPECT_EQ(difference(got->prompt_logprobs, plain(r).prompt_logprobs), "");
}

TEST(EngineAnswers, AMaskChoosesAmongIds) {
  const auto engine = engine_of(small_options());
  Request r = request_of(some_ids(30), 40);
  r.mask = [](int32_t, std::span<const int32_t> generated, std::span<uint32_t> allowed) -> Status {
    if (allowed.size() != 2 || allowed[0] != 0xffffffffu || allowed[1] != 0xffffffffu)
      return Error{ErrorCode::kInternal, "61 ids in two words, all allowed"};
    allowed[0] = 0, allowed[1] = 0xe0000000u;                                      // of ids that do not exist
    allowed[generated.size() % 2] |= 1u << (generated.size() % 2 == 0 ? 20 : 28);  // 20 and 60
    return {};
  };
  const auto got = engine->run(r);
  ASSERT_TRUE(got.ok()) << got.error().message;
  ASSERT_EQ(got->choices[0].ids.size(), 40u);
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(got->choices[0].ids[i], i % 2 == 0 ? 20 : 60);
  r.min_tokens = 10, r.stop_ids = {60};
  EXPECT_EQ(engine->run(r).error().message,
            "[engine] choice 0, token 1: the mask allows only what ends the answer, and min_tokens is 10");
}

// A guess may go on after the end of the answer: plain decoding never asks what might be there.
TEST(EngineAnswers, AMaskIsNotAskedBehindTheEnd) {
  const auto engine = engine_of(small_options());
  const std::vector<int32_t> cycle = {7, 9, 11, 13, 15};
  std::vector<int32_t> prompt;
  for (int i = 0; i < 20; ++i) prompt.insert(prompt.end(), cycle.begin(), cycle.end());
  Request r = request_of(prompt, 60);
  r.mask = [&](int32_t, std::span<const int32_t> generated, std::span<uint32_t> allowed) -> Status {
    if (generated.size() >= 19) return Error{ErrorCode::kInternal, "asked behind the end"};
    allowed[0] = 1u << cycle[generated.size() % 5];
    allowed[1] = 0;
    return {};
  };
  Request ends = r;
  ends.mask = [&, mask = r.mask](int32_t choice, std::span<const int32_t> generated,
                                 std::span<uint32_t> allowed) -> Status {
    if (std::count(generated.begin(), generated.end(), 13) > 0)
      return Error{ErrorCode::kInternal, "asked behind the end"};
    return mask(choice, generated, allowed);
  };
  ends.stop_ids = {13};
  const auto by_id = engine->run(ends);
  ASSERT_TRUE(by_id.ok()) << by_id.error().message;
  EXPECT_EQ(by_id->choices[0].ids, (std::vector<int32_t>{7, 9, 11}));
  EXPECT_GT(by_id->draft_tokens, 0);
  ends.stop_ids.clear();
  ends.stop = {std::string(engine->model().tokenizer()->piece(13))};
  const auto by_text = engine->run(ends);
  ASSERT_TRUE(by_text.ok()) << by_text.error().message;
  EXPECT_EQ(by_text->choices[0].finish, FinishReason::kStop);
  EXPECT_EQ(engine->run(r).error().message, "asked behind the end");  // what is reached still counts
}

TEST(EngineAnswers, TextIsEncodedAndStopsEndIt) {
  const auto engine = engine_of(small_options());
  Request r;
  r.text = "once upon a time";
  r.max_tokens = 40, r.ignore_eos = true;
  r.sampling.temperature = 1;
  const auto whole = engine->run(r);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  const std::string text = whole->choices[0].text;
  ASSERT_GE(text.size(), 8u);
  r.stop = {text.substr(text.size() / 2, 3), "never in it"};
  const auto cut = engine->run(r);
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->choices[0].finish, FinishReason::kStop);
  EXPECT_EQ(cut->choices[0].stop, r.stop[0]);
  EXPECT_EQ(cut->choices[0].text, text.substr(0, text.find(r.stop[0])));
}

TEST(EngineAnswers, GuessesAfterAPromptWhoseRowsAreAllWanted) {
  EngineOptions o = small_options();
  o.chunk = 1;  // the prompt's last id comes alone, as that of a stream
  const auto engine = engine_of(o);
  std::vector<int32_t> prompt;
  for (int i = 0; i < 8; ++i) {
    for (int32_t id : {7, 9, 11, 13, 15}) prompt.push_back(id);
  }
  Request r = request_of(prompt, 10);
  r.sampling.temperature = 1;
  r.prompt_logprobs = r.logprobs = true;
  const auto got = engine->run(r);
  ASSERT_TRUE(got.ok());
  EXPECT_GT(got->draft_tokens, 0);
  const Response want = plain(r);
  EXPECT_EQ(difference(got->choices[0], want.choices[0]), "");
  EXPECT_EQ(difference(got->prompt_logprobs, want.prompt_logprobs), "");
}

TEST(EngineAnswers, GuessesComeTrueAndChangeNothing) {
  EngineOptions o = small_options();
  const auto engine = engine_of(o);
  std::vector<int32_t> prompt;
  for (int i = 0; i < 20; ++i) {
    for (int32_t id : {7, 9, 11, 13, 15}) prompt.push_back(id);
  }
  Request r = request_of(prompt, 100);
  r.sampling.logit_bias = {{7, 30.0f}};  // a text that repeats itself
  const auto got = engine->run(r);
  ASSERT_TRUE(got.ok());
  EXPECT_GT(got->draft_tokens_accepted, 0);
  EXPECT_EQ(difference(got->choices[0], plain(r).choices[0]), "");
  r.speculate = false;
  const auto without = engine->run(r);
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without->draft_tokens, 0);
  EXPECT_EQ(difference(got->choices[0], without->choices[0]), "");
}

}  // namespace
}  // namespace minfer
