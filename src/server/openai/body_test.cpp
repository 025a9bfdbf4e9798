// Request bodies: every field is followed or refused by name, nothing is ignored.
#include "server/openai/body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "chat/json.h"

namespace minfer::openai {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Result<Body> parse(Endpoint endpoint, const std::string& json, const BodyDefaults& defaults = {}) {
  return parse_body(endpoint, MINFER_TRY(chat::parse_json(json)), defaults);
}
Result<Body> chat_body(const std::string& more, const BodyDefaults& defaults = {}) {
  return parse(Endpoint::kChat,
               R"({"model":"m","messages":[{"role":"user","content":"hi"}])" + (more.empty() ? "" : "," + more) + "}",
               defaults);
}
Result<Body> completion_body(const std::string& more) {
  return parse(Endpoint::kCompletion, R"({"prompt":"hi")" + (more.empty() ? "" : "," + more) + "}");
}

TEST(OpenAiBody, AllChatFields) {
  const auto r = chat_body(
      R"("max_completion_tokens":7,"temperature":0.5,"top_p":0.25,"n":3,"stop":["a","b"],"seed":-1,"logprobs":true,
         "top_logprobs":4,"logit_bias":{"5":-100,"3":1.5},"presence_penalty":-2,"frequency_penalty":2,"user":"u",
         "top_k":9,"min_p":0.125,"typical_p":0.75,"repeat_penalty":1.25,"repeat_last_n":-1,"min_tokens":2,
         "ignore_eos":true,"stop_token_ids":[1,2],"priority":3,"tools":[{"type":"function"}],"tool_choice":"auto",
         "parallel_tool_calls":true,"response_format":{"type":"text"},"store":false,"service_tier":"auto",
         "stream":false,"chat_template_kwargs":{"enable_thinking":false},"add_generation_prompt":false,
         "samplers":["top_k","temperature"],"dry_multiplier":0.5,"xtc_probability":0.5,"mirostat":0,
         "post_sampling_probs":true,"dry_sequence_breakers":["\n","ab"])");
  ASSERT_TRUE(r.ok()) << r.error().message;
  const Request& q = r->request;
  EXPECT_EQ(r->model, "m");
  EXPECT_EQ(q.max_tokens, 7);
  EXPECT_EQ(q.sampling.temperature, 0.5f);
  EXPECT_EQ(q.sampling.top_p, 0.25f);
  EXPECT_EQ(q.n, 3);
  EXPECT_THAT(q.stop, ElementsAre("a", "b"));
  EXPECT_EQ(q.sampling.seed, UINT64_MAX);
  EXPECT_TRUE(q.logprobs);
  EXPECT_EQ(q.top_logprobs, 4);
  EXPECT_THAT(q.sampling.logit_bias, ElementsAre(Pair(5, -100.0f), Pair(3, 1.5f)));
  EXPECT_EQ(q.sampling.presence_penalty, -2.0f);
  EXPECT_EQ(q.sampling.frequency_penalty, 2.0f);
  EXPECT_EQ(q.client, "u");
  EXPECT_EQ(q.sampling.top_k, 9);
  EXPECT_EQ(q.sampling.min_p, 0.125f);
  EXPECT_EQ(q.sampling.typical_p, 0.75f);
  EXPECT_EQ(q.sampling.repeat_penalty, 1.25f);
  EXPECT_EQ(q.sampling.repeat_last_n, -1);
  EXPECT_EQ(q.min_tokens, 2);
  EXPECT_TRUE(q.ignore_eos);
  EXPECT_THAT(q.stop_ids, ElementsAre(1, 2));
  EXPECT_EQ(q.priority, 3);
  EXPECT_EQ(r->tools.items().size(), 1u);
  ASSERT_EQ(r->template_kwargs.size(), 1u);
  EXPECT_EQ(r->template_kwargs[0].first, "enable_thinking");
  EXPECT_FALSE(r->add_generation_prompt);
  EXPECT_THAT(q.sampling.samplers, ElementsAre(SamplerStage::kTopK, SamplerStage::kTemperature));
  EXPECT_EQ(q.sampling.dry_multiplier, 0.5f);
  EXPECT_EQ(q.logprobs_of, LogprobsOf::kSampled);
  ASSERT_TRUE(r->dry_breakers.has_value());
  EXPECT_THAT(*r->dry_breakers, ElementsAre("\n", "ab"));
}

// Numbers and lists are one table with the stamp's; here each is asked for by its name.
TEST(OpenAiBody, EveryNumberOfTheSamplersHasAField) {
  const SamplingParams usual;
  const auto given = [&](const std::string& field) {
    const auto r = chat_body(field);
    EXPECT_TRUE(r.ok()) << field << ": " << r.error().message;
    return r.ok() ? r->request.sampling : usual;
  };
  using P = SamplingParams;
  const std::pair<const char*, float P::*> reals[] = {
      {"repeat_penalty", &P::repeat_penalty},
      {"frequency_penalty", &P::frequency_penalty},
      {"presence_penalty", &P::presence_penalty},
      {"dry_multiplier", &P::dry_multiplier},
      {"dry_base", &P::dry_base},
      {"top_n_sigma", &P::top_n_sigma},
      {"typical_p", &P::typical_p},
      {"top_p", &P::top_p},
      {"min_p", &P::min_p},
      {"xtc_probability", &P::xtc_probability},
      {"xtc_threshold", &P::xtc_threshold},
      {"temperature", &P::temperature},
      {"dynatemp_range", &P::dynatemp_range},
      {"dynatemp_exponent", &P::dynatemp_exponent},
      {"adaptive_target", &P::adaptive_target},
      {"adaptive_decay", &P::adaptive_decay},
      {"mirostat_tau", &P::mirostat_tau},
      {"mirostat_eta", &P::mirostat_eta},
  };
  for (const auto& [name, at] : reals) {
    const float value = at == &P::dry_base ? 1.5f : 0.625f;
    EXPECT_EQ(given(fmt::format("\"{}\":{}", name, value)).*at, value) << name;
    EXPECT_FALSE(chat_body(fmt::format("\"{}\":1e6", name)).ok()) << name;
  }
  const std::pair<const char*, int32_t P::*> ints[] = {
      {"repeat_last_n", &P::repeat_last_n},
      {"dry_allowed_length", &P::dry_allowed_length},
      {"dry_penalty_last_n", &P::dry_penalty_last_n},
      {"top_k", &P::top_k},
      {"min_keep", &P::min_keep},
      {"mirostat", &P::mirostat},
  };
  for (const auto& [name, at] : ints) {
    EXPECT_EQ(given(fmt::format("\"{}\":1", name)).*at, 1) << name;
    EXPECT_FALSE(chat_body(fmt::format("\"{}\":-5", name)).ok()) << name;
  }
  const auto forbidden = given(R"("logit_bias":{"7":false})").logit_bias;
  ASSERT_EQ(forbidden.size(), 1u);
  EXPECT_EQ(forbidden[0], std::pair(7, -INFINITY));
  EXPECT_TRUE(chat_body(R"("dry_sequence_breakers":[])")->dry_breakers->empty());
  EXPECT_FALSE(chat_body("")->dry_breakers.has_value());
}

TEST(OpenAiBody, SilenceMeansTheDefaults) {
  BodyDefaults d;
  d.sampling.temperature = 0.125f;
  d.sampling.seed = 77;
  auto r = chat_body(R"("temperature":null,"stop":null,"tools":null,"seed":null,"logit_bias":null,"user":null)", d);
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_EQ(r->request.sampling.temperature, 0.125f);
  EXPECT_EQ(r->request.sampling.seed, 77u);
  EXPECT_EQ(r->request.max_tokens, -1);
  EXPECT_EQ(completion_body("")->request.max_tokens, 16);  // as OpenAI's
  d.max_tokens = 5;
  EXPECT_EQ(chat_body("", d)->request.max_tokens, 5);
  EXPECT_EQ(chat_body(R"("max_tokens":9)", d)->request.max_tokens, 9);
}

struct Refused {
  const char *fields, *says;
};

TEST(OpenAiBody, WrongOrUnsupportedChatFieldsAreNamed) {
  const Refused cases[] = {
      {R"("temprature":1)", "\"temprature\": unknown field, expected one of model,"},
      {R"("max_tokens":0)", "max_tokens: found 0, expected a whole number from 1"},
      {R"("max_tokens":-1)", "max_tokens: found -1"},
      {R"("max_tokens":1.5)", "max_tokens: found 1.5"},
      {R"("max_tokens":"5")", "max_tokens: found \"5\""},
      {R"("max_tokens":1e99)", "max_tokens: found 1e+99"},
      {R"("max_tokens":99999999999999999999)", "max_tokens: found 99999999999999999999"},
      {R"("max_tokens":5,"max_completion_tokens":6)", "max_tokens: found 5, but max_completion_tokens is 6"},
      {R"("temperature":-1)", "temperature"},
      {R"("temperature":1e300)", "temperature: found 1e+300, expected a number"},
      {R"("temperature":true)", "temperature: found true, expected a number"},
      {R"("top_p":2)", "top_p"},
      {R"("n":0)", "n: found 0, expected a whole number from 1 to 128"},
      {R"("n":129)", "n: found 129"},
      {R"("stop":"")", "stop: found \"\", expected a string or a list of strings, none empty"},
      {R"("stop":["a",5])", "stop: found [\"a\", 5]"},
      {R"("seed":0.5)", "seed: found 0.5"},
      {R"("seed":18446744073709551616)", "seed: found 18446744073709551616"},
      {R"("logprobs":5)", "logprobs: found 5, expected true or false"},
      {R"("top_logprobs":2)", "top_logprobs: found 2, expected it with logprobs only"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs: found 21, expected a whole number from 0 to 20"},
      {R"("logit_bias":[1])", "logit_bias: found [1], expected an object"},
      {R"("logit_bias":{"x":1})", "logit_bias: found \"x\", expected the id of a token"},
      {R"("logit_bias":{"-4":1})", "logit_bias: found \"-4\""},
      {R"("logit_bias":{"4":101})", "logit_bias[4]: found 101, expected a number from -100 to 100"},
      {R"("tools":{"a":1})", "tools: found dict, expected a list"},
      {R"("tool_choice":"required")", "tool_choice: found \"required\": a call cannot be forced"},
      {R"("tool_choice":{"type":"function"})", "tool_choice"},
      {R"("parallel_tool_calls":false)", "parallel_tool_calls: found false"},
      {R"("response_format":{"type":"json_object"})", "response_format: found {\"type\": \"json_object\"}"},
      {R"("response_format":"text")", "response_format: found \"text\", expected an object"},
      {R"("stream":1)", "stream: found 1, expected true or false"},
      {R"("stream_options":{"include_usage":true})",
       "stream_options: found {\"include_usage\": true}, expected it with"},
      {R"("stream":true,"stream_options":{"usage":true})", "stream_options.\"usage\": unknown field"},
      {R"("store":true)", "store: found true: answers are not kept"},
      {R"("service_tier":"flex")", "service_tier: found \"flex\""},
      {R"("functions":[])", "functions: found []: not supported"},
      {R"("reasoning_effort":"low")", "reasoning_effort"},
      {R"("metadata":{})", "metadata: found {}: not supported"},
      {R"("chat_template_kwargs":{"messages":1})", "chat_template_kwargs.messages: it comes from the conversation"},
      {R"("repeat_penalty":1,"repetition_penalty":1)", "repetition_penalty: it is repeat_penalty by another name"},
      {R"("samplers":["top_q"])", "samplers: "},
      {R"("user":5)", "user: found 5, expected a string"},
      {R"("post_sampling_probs":true)", "post_sampling_probs: found true, expected it with logprobs only"},
      {R"("post_sampling_probs":1)", "post_sampling_probs: found 1, expected true or false"},
      {R"("dry_sequence_breakers":"a")", "dry_sequence_breakers: found \"a\", expected a list of at most 64 strings"},
      {R"("dry_sequence_breakers":["a",""])", "dry_sequence_breakers: found \"\", expected a string of 1 to 40 bytes"},
      {R"("dry_sequence_breakers":["12345678901234567890123456789012345678901"])",
       "expected a string of 1 to 40 bytes"},
      {R"("dry_sequence_breakers":[5])", "dry_sequence_breakers: found 5"},
      {R"("logit_bias":{"5":true})", "logit_bias[5]: found true, expected a number from -100 to 100, or false"},
      {R"("best_of":2)", "\"best_of\": unknown field"},
      {R"("prompt":"x")", "\"prompt\": unknown field"},
  };
  for (const auto& c : cases) {
    const auto r = chat_body(c.fields);
    ASSERT_FALSE(r.ok()) << c.fields;
    EXPECT_THAT(r.error().message, HasSubstr(c.says)) << c.fields;
  }
}

TEST(OpenAiBody, Messages) {
  for (const char* json : {"{}", R"({"messages":null})", R"({"messages":[]})", R"({"messages":"hi"})",
                           R"({"messages":[{"content":"no role"}]})", R"({"messages":[5]})",
                           R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]})"}) {
    const auto r = parse(Endpoint::kChat, json);
    ASSERT_FALSE(r.ok()) << json;
    EXPECT_THAT(r.error().message, testing::AnyOf(HasSubstr("message"), HasSubstr("image_url"))) << json;
  }
  EXPECT_THAT(parse(Endpoint::kChat, "[1]").error().message, HasSubstr("body: found [1], expected an object"));
  const auto r = chat_body(R"("continue_final_message":true)");
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(r->continue_final_message);
  EXPECT_FALSE(r->add_generation_prompt);
}

TEST(OpenAiBody, ToolChoiceNoneKeepsTheToolsFromTheModel) {
  const auto r = chat_body(R"("tools":[{"type":"function"}],"tool_choice":"none")");
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(r->tools.is_none());
  EXPECT_FALSE(r->parse_calls);
}

TEST(OpenAiBody, Prompts) {
  const auto prompts = [](const char* json) { return parse(Endpoint::kCompletion, json); };
  EXPECT_THAT(prompts(R"({"prompt":"a"})")->prompts, ElementsAre(Prompt("a")));
  EXPECT_THAT(prompts(R"({"prompt":["a",""]})")->prompts, ElementsAre(Prompt("a"), Prompt("")));
  EXPECT_THAT(prompts(R"({"prompt":[1,2.0]})")->prompts, ElementsAre(Prompt(std::vector<int32_t>{1, 2})));
  EXPECT_THAT(prompts(R"({"prompt":[[1],[]]})")->prompts,
              ElementsAre(Prompt(std::vector<int32_t>{1}), Prompt(std::vector<int32_t>{})));
  std::string many = R"({"prompt":[""])";
  for (size_t i = 0; i < kMaxInputs; ++i) many.insert(many.size() - 1, ",\"\"");
  many += "}";
  for (const std::string& json :
       {std::string("{}"), std::string(R"({"prompt":null})"), std::string(R"({"prompt":[]})"),
        std::string(R"({"prompt":5})"), std::string(R"({"prompt":[1,"a"]})"), std::string(R"({"prompt":["a",1]})"),
        std::string(R"({"prompt":["a",[1]]})"), std::string(R"({"prompt":[-1]})"),
        std::string(R"({"prompt":[4294967296]})"), std::string(R"({"prompt":[[1],["a"]]})"), many}) {
    const auto r = parse(Endpoint::kCompletion, json);
    ASSERT_FALSE(r.ok()) << json;
    EXPECT_THAT(r.error().message, HasSubstr("prompt: ")) << json;
  }
}

TEST(OpenAiBody, CompletionFields) {
  const auto r = completion_body(R"("max_tokens":0,"logprobs":2,"echo":true,"n":2,"best_of":5)");
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_EQ(r->request.max_tokens, 0);
  EXPECT_EQ(r->request.best_of, 5);
  EXPECT_EQ(r->request.top_logprobs, 2);
  EXPECT_TRUE(r->request.logprobs && r->request.prompt_logprobs && r->echo);
  for (const auto& c : {Refused{R"("suffix":"x")", "suffix: found \"x\""},
                        {R"("n":4,"best_of":3)", "best_of: found 3, expected at least n (4)"},
                        {R"("best_of":129)", "best_of: found 129"},
                        {R"("best_of":2,"stream":true)", "best_of: found 2, expected n (1) with stream"},
                        {R"("logprobs":true)", "logprobs: found true, expected a whole number from 0 to 20"},
                        {R"("messages":[])", "\"messages\": unknown field"}}) {
    const auto bad = completion_body(c.fields);
    ASSERT_FALSE(bad.ok()) << c.fields;
    EXPECT_THAT(bad.error().message, HasSubstr(c.says));
  }
}

TEST(OpenAiBody, Embeddings) {
  const auto r = parse(Endpoint::kEmbedding, R"({"input":["a","b"],"encoding_format":"base64","pooling":"last"})");
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_TRUE(r->base64);
  EXPECT_EQ(r->embed.pooling, Pooling::kLast);
  for (const char* json : {R"({"input":"a","dimensions":5})", R"({"input":"a","encoding_format":"hex"})",
                           R"({"input":"a","pooling":"none"})", R"({"input":"a","temperature":1})", "{}"}) {
    EXPECT_FALSE(parse(Endpoint::kEmbedding, json).ok()) << json;
  }
}

TEST(OpenAiBody, LongValuesAreShownShort) {
  const std::string big(100'000, 'x');
  auto r = chat_body("\"max_tokens\":\"" + big + "\"");
  ASSERT_FALSE(r.ok());
  EXPECT_LT(r.error().message.size(), 200u);
  r = chat_body("\"" + big + "\":1");
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.error().message, HasSubstr("...: unknown field"));
  EXPECT_LT(r.error().message.size(), 1500u);  // the known fields are listed
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\u00fc";
  r = chat_body("\"seed\":\"a" + umlauts + "\"");
  EXPECT_THAT(r.error().message, HasSubstr("\u00fc..., expected"));
}

TEST(OpenAiBody, Endpoints) {
  for (const Endpoint e : {Endpoint::kChat, Endpoint::kCompletion, Endpoint::kEmbedding}) {
    EXPECT_EQ(endpoint_from_url(endpoint_url(e)), e);
  }
  EXPECT_FALSE(endpoint_from_url("/v1/chat").has_value());
}

}  // namespace
}  // namespace minfer::openai
