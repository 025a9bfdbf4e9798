// Replies: reasoning and calls that control tokens mark, answers that a stop string cut, log-probabilities, embeddings.
#include "server/openai/reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "server/openai/answer_reader.h"

namespace minfer::openai {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMarkers[] = {"<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>"};
constexpr const char* kTemplate = "<think> <tool_call> {\"name\": {{ x }}, \"arguments\": {{ y }}} </tool_call>";

// A vocabulary of single bytes (byte-level BPE spells them so) and the markers as control tokens.
class Vocabulary {
 public:
  Vocabulary() {
    for (int c = 33; c < 127; ++c)
      add(std::string(1, static_cast<char>(c)), std::string(1, static_cast<char>(c)), false);
    add("\u0120", " ", false);
    add("\u010a", "\n", false);
    add("\u00c3", "\xc3", false);  // the two bytes of an umlaut
    add("\u00bc", "\xbc", false);
    add("ab", "ab", false);
    for (const char* m : kMarkers) add(m, m, true);
    VocabData data;
    data.model = "gpt2";
    for (const auto& t : texts_) data.tokens.push_back(t);
    data.types = types_;
    data.merges = {"a b"};
    data.pre = "gpt-2";
    auto made = Tokenizer::create(data);
    if (!made.ok()) ADD_FAILURE() << made.error().message;
    tokenizer_.emplace(std::move(made).value());
  }

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  std::vector<int32_t> ids(std::string_view text) const {
    std::vector<int32_t> out;
    while (!text.empty()) {
      size_t best = 0;
      for (size_t i = 0; i < bytes_.size(); ++i) {
        if (text.starts_with(bytes_[i]) && bytes_[i].size() > bytes_[best].size() * text.starts_with(bytes_[best]))
          best = i;
      }
      out.push_back(static_cast<int32_t>(best));
      text.remove_prefix(bytes_[best].size());
    }
    return out;
  }

 private:
  void add(std::string text, std::string bytes, bool control) {
    texts_.push_back(std::move(text));
    bytes_.push_back(std::move(bytes));
    types_.push_back(static_cast<int32_t>(control ? TokenType::kControl : TokenType::kNormal));
  }
  std::vector<std::string> texts_, bytes_;
  std::vector<int32_t> types_;
  std::optional<Tokenizer> tokenizer_;
};

// What the engine gives for an answer: control tokens are not part of the text.
Choice choice_of(const Vocabulary& v, const std::string& answer) {
  Choice c;
  c.ids = v.ids(answer);
  c.text = answer;
  for (const std::string m : kMarkers) {
    for (size_t at = c.text.find(m); at != c.text.npos; at = c.text.find(m)) c.text.erase(at, m.size());
  }
  return c;
}

Json message_of(const Vocabulary& v, Choice choice, Body body = {}, std::string* finish = nullptr) {
  Answered a;
  a.response.choices.push_back(std::move(choice));
  const Json j = reply(body, {a}, &v.tokenizer(), chat::AnswerFormat::detect(kTemplate), {.id = "x"});
  if (finish != nullptr) *finish = j["choices"][0]["finish_reason"];
  return j["choices"][0]["message"];
}

TEST(OpenAiReply, ReasoningBetweenControlTokens) {
  const Vocabulary v;
  const Json m = message_of(v, choice_of(v, "<think>\nwhy \u00fc?\n</think>\n\nHello ab<|im_end|>!"));
  EXPECT_EQ(m["reasoning_content"], "why \u00fc?");
  EXPECT_EQ(m["content"], "Hello ab!");
}

TEST(OpenAiReply, ToolCalls) {
  const Vocabulary v;
  const std::string answer =
      "Well.<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>\n<tool_call>\n"
      "{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
  std::string finish;
  Json m = message_of(v, choice_of(v, answer), {}, &finish);
  EXPECT_EQ(finish, "tool_calls");
  EXPECT_EQ(m["content"], "Well.");
  ASSERT_EQ(m["tool_calls"].size(), 2u);
  EXPECT_EQ(m["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(Json::parse(m["tool_calls"][0]["function"]["arguments"].get<std::string>()), Json({{"x", 1}}));
  EXPECT_NE(m["tool_calls"][0]["id"], m["tool_calls"][1]["id"]);
  m = message_of(v, choice_of(v, answer.substr(5)), {}, &finish);
  EXPECT_TRUE(m["content"].is_null());
  Body none;
  none.parse_calls = false;
  m = message_of(v, choice_of(v, answer), none, &finish);
  EXPECT_EQ(finish, "stop");
  EXPECT_FALSE(m.contains("tool_calls"));
  EXPECT_THAT(m["content"].get<std::string>(), testing::HasSubstr("\"name\": \"g\""));
}

TEST(OpenAiReply, CutByLengthIsNoCall) {
  const Vocabulary v;
  Choice c = choice_of(v, "<tool_call>\n{\"name\": \"f\", \"argum");
  c.finish = FinishReason::kLength;
  std::string finish;
  const Json m = message_of(v, c, {}, &finish);
  EXPECT_EQ(finish, "length");
  EXPECT_FALSE(m.contains("tool_calls"));
  EXPECT_THAT(m["content"].get<std::string>(), testing::HasSubstr("{\"name\": \"f\", \"argum"));
}

TEST(OpenAiReply, TextThatAStopCut) {
  const Vocabulary v;
  Choice c = choice_of(v, "<think>a</think>bcdef</think>gh");
  c.text = "abc";  // a stop "de": the ids go further
  const Json m = message_of(v, c);
  EXPECT_EQ(m["reasoning_content"], "a");
  EXPECT_EQ(m["content"], "bc");
}

// Text may lag behind the ids by any number of bytes, and come in any pieces.
TEST(AnswerReader, AnyCutOfTheEventsGivesTheSame) {
  const Vocabulary v;
  const auto format = chat::AnswerFormat::detect(kTemplate);
  const std::string answer =
      "<think>hm \u00fc</think>So: <tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"\u00fc\"}}</tool_call> done";
  const Choice c = choice_of(v, answer);
  std::mt19937 rng(1);
  for (int round = 0; round < 200; ++round) {
    AnswerReader reader(v.tokenizer(), format, {});
    chat::ParsedAnswer got;
    size_t ids = 0, text = 0, decoded = 0;
    StreamDecoder decoder(v.tokenizer());
    while (ids < c.ids.size()) {
      Event e;
      for (size_t n = rng() % 4; n > 0 && ids < c.ids.size(); --n) {
        e.ids.push_back(c.ids[ids]);
        decoded += decoder.push(c.ids[ids++])->size();
      }
      const size_t until = text + rng() % (decoded - text + 1);
      e.text = c.text.substr(text, until - text);
      // Whole characters, as the engine gives them.
      while (!e.text.empty() && text + e.text.size() < c.text.size() &&
             (static_cast<uint8_t>(c.text[text + e.text.size()]) & 0xc0) == 0x80)
        e.text.pop_back();
      text += e.text.size();
      got.add(reader.push(e));
    }
    got.add(reader.push({0, {}, c.text.substr(text), {}, FinishReason::kStop}));
    EXPECT_EQ(got.reasoning, "hm \u00fc");
    EXPECT_EQ(got.content, "So:done");
    ASSERT_EQ(got.calls.size(), 1u);
    EXPECT_EQ(Json::parse(got.calls[0].arguments), Json({{"x", "\u00fc"}}));
  }
}

TEST(OpenAiReply, Logprobs) {
  const Vocabulary v;
  Body body;
  Answered a;
  a.request.logprobs = true;
  a.request.prompt = v.ids("hi");
  Choice c = choice_of(v, "\u00fcx");
  for (size_t i = 0; i < c.ids.size(); ++i) c.logprobs.push_back({-0.1f, {{c.ids[i], -0.1f}, {0, -INFINITY}}});
  c.logprobs.back().top.erase(c.logprobs.back().top.begin());  // drawn, but none of the likeliest
  a.response.choices = {c};
  a.response.prompt_logprobs = {{-0.5f, {}}};
  Json j = reply(body, {a}, &v.tokenizer(), chat::AnswerFormat::detect(""), {.id = "x"});
  const Json& content = j["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 3u);
  EXPECT_EQ(content[0].dump(),
            "{\"token\":\"\uFFFD\",\"logprob\":-0.1,\"bytes\":[195],\"top_logprobs\":[{\"token\":\"\uFFFD\","
            "\"logprob\":-0.1,\"bytes\":[195]},{\"token\":\"!\",\"logprob\":-9999.0,\"bytes\":[33]}]}");
  body.endpoint = Endpoint::kCompletion;
  body.prompts = {Prompt("hi")};
  body.echo = true;
  j = reply(body, {a}, &v.tokenizer(), chat::AnswerFormat::detect(""), {.id = "x"});
  EXPECT_EQ(j["choices"][0]["text"], "hi\u00fcx");
  const Json& lists = j["choices"][0]["logprobs"];
  EXPECT_EQ(lists["token_logprobs"].dump(), "[null,-0.5,-0.1,-0.1,-0.1]");
  EXPECT_EQ(lists["text_offset"].dump(), "[0,1,2,2,3]");
  EXPECT_TRUE(lists["top_logprobs"][0].is_null());
  EXPECT_EQ(lists["top_logprobs"][4].dump(), "{\"!\":-9999.0,\"x\":-0.1}");
}

TEST(OpenAiReply, IndicesAndUsageOverSeveralPrompts) {
  const Vocabulary v;
  Body body;
  body.endpoint = Endpoint::kCompletion;
  body.prompts = {Prompt("a"), Prompt("b")};
  Answered a;
  a.response.choices = {choice_of(v, "x"), choice_of(v, "y")};
  a.response.prompt_tokens = 3, a.response.generated_tokens = 2, a.response.cached_tokens = 1;
  const Json j = reply(body, {a, a}, &v.tokenizer(), chat::AnswerFormat::detect(""), {.id = "x", .model = "m"});
  std::vector<int> indices;
  for (const auto& c : j["choices"]) indices.push_back(c["index"]);
  EXPECT_THAT(indices, testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(
      j["usage"].dump(),
      R"({"prompt_tokens":6,"completion_tokens":4,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":2}})");
}

TEST(OpenAiReply, Embeddings) {
  Embeddings e;
  e.rows = {{1.0f, -2.0f, 0.1f}, {0.5f}};
  e.prompt_tokens = 4;
  Body body;
  Json j = embedding_reply(body, e, {.model = "m"});
  EXPECT_EQ(j["data"][0]["embedding"].dump(), "[1.0,-2.0,0.1]");
  EXPECT_EQ(j["data"][1]["index"], 1);
  body.base64 = true;
  j = embedding_reply(body, e, {.model = "m"});
  // Python: base64.b64encode(struct.pack("<3f", 1, -2, .1)), and of struct.pack("<f", .5)
  EXPECT_EQ(j["data"][0]["embedding"], "AACAPwAAAMDNzMw9");
  EXPECT_EQ(j["data"][1]["embedding"], "AAAAPw==");
}

}  // namespace
}  // namespace minfer::openai
