// Every form of answer, well-formed and not, each parsed whole, byte by byte and cut at random.
#include "chat/answer/answer.h"

#include <gtest/gtest.h>

#include <random>

#include "chat/json.h"
#include "chat/testing/answer_check.h"

namespace minfer::chat {
namespace {

AnswerFormat format(std::string_view name, std::string_view source = {}) {
  auto f = AnswerFormat::named(name, source);
  EXPECT_TRUE(f.ok()) << f.error().message;
  return *f;
}

Value tools() {
  return *parse_json(
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{
          "s":{"type":"string"},"n":{"type":"integer"},"o":{"type":"object"}}}}},{"name":"g","parameters":{}}])");
}

// "(reasoning)content|id:name{arguments}|..."
std::string parsed(const AnswerFormat& f, std::string_view text, AnswerOptions options = {}) {
  ParsedAnswer a;
  const std::string wrong = testing::check_answer(f, text, options, 1, a);
  EXPECT_EQ(wrong, "") << text;
  std::string out = a.reasoning.empty() ? "" : "(" + a.reasoning + ")";
  out += a.content;
  for (const ParsedCall& c : a.calls) out += "|" + (c.id.empty() ? "" : c.id + ":") + c.name + c.arguments;
  return out;
}
std::string parsed(std::string_view name, std::string_view text, AnswerOptions options = {}) {
  return parsed(format(name), text, std::move(options));
}
AnswerOptions with_tools() { return {.tools = tools()}; }
AnswerOptions thinking() { return {.thinking_open = true}; }

TEST(Reasoning, BeforeContent) {
  EXPECT_EQ(parsed("hermes", "<think>\nhm\n</think>\n\nHello\n"), "(hm)Hello\n");
  EXPECT_EQ(parsed("hermes", "hm, 1 < 2\n</think>\n\nHello", thinking()), "(hm, 1 < 2)Hello");
  EXPECT_EQ(parsed("hermes", "<think>\nhm</think>Hello", thinking()), "(hm)Hello");  // opened twice
  EXPECT_EQ(parsed("hermes", "</think>Hello"), "Hello");
  EXPECT_EQ(parsed("hermes", "cut of", thinking()), "(cut of)");
  EXPECT_EQ(parsed("hermes", "cut </thin", thinking()), "(cut </thin)");
  EXPECT_EQ(parsed("hermes", "<think></think>\n Hi"), "Hi");
}

TEST(Reasoning, WhatIsOnlyWrittenAboutStays) {
  EXPECT_EQ(parsed("hermes", "Use the <think> tag"), "Use the <think> tag");
  EXPECT_EQ(parsed("hermes", "It ends with </think>."), "It ends with </think>.");
  EXPECT_EQ(parsed("hermes", "a <thin> b < c"), "a <thin> b < c");
  EXPECT_EQ(parsed("none", " x <tool_call> \n"), " x <tool_call> \n");
  EXPECT_EQ(parsed("hermes", "<think>a</think>b", {.parse_reasoning = false}), "<think>a</think>b");
}

TEST(Reasoning, MarkersOfOtherFamilies) {
  const auto f = [](std::string_view source) { return AnswerFormat::detect(source); };
  EXPECT_EQ(parsed(f("<seed:think>"), "<seed:think>a</seed:think>b"), "(a)b");
  EXPECT_EQ(parsed(f("[THINK] [TOOL_CALLS]"), "[THINK]a[/THINK]b"), "(a)b");
  EXPECT_EQ(parsed(f("<|START_THINKING|> <|START_ACTION|> <|START_RESPONSE|> <|END_RESPONSE|>"),
                   "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>"),
            "(a)b");
  EXPECT_EQ(parsed(f("<|channel> <|tool_call> <|\"|>"), "<|channel>thought\na\n<channel|>b"), "(a)b");
  EXPECT_EQ(parsed(f("<|inner_prefix|> <|tools_prefix|>"), "<|inner_prefix|>a<|inner_suffix|>b"), "(a)b");
  EXPECT_EQ(parsed(f("[BEGIN FINAL RESPONSE] [END FINAL RESPONSE]"),
                   "a\n[BEGIN FINAL RESPONSE]\nb\n[END FINAL RESPONSE]", thinking()),
            "(a)b");
  EXPECT_EQ(parsed(f("Here is my thought process:"), "Here is my thought process: a\n\nHere is my response:\nb"),
            "(a)b");
  EXPECT_EQ(parsed("hermes", "<reasoning>a</reasoning>b"), "<reasoning>a</reasoning>b");  // not this model's
}

TEST(Calls, Hermes) {
  EXPECT_EQ(
      parsed("hermes", "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"x\"}}\n</tool_call>"),
      "Let me see.|f{\"s\": \"x\"}");
  EXPECT_EQ(parsed("hermes",
                   "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>\n"
                   "{\"arguments\":{\"a\":[1,{}]},\"name\":\"g\"}</tool_call>\nDone."),
            "Done.|f{}|g{\"a\":[1,{}]}");
  EXPECT_EQ(parsed("hermes", "<think>a</think>\n<tool_call>{\"name\":\"f\"}"), "(a)|f{}");  // no closing tag
  EXPECT_EQ(parsed("hermes", "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": 1}\"}</tool_call>"),
            "|f{\"a\": 1}");
  EXPECT_EQ(parsed("hermes",
                   "<tool_call>{\"id\":\"c1\",\"type\":\"function\",\"function\":"
                   "{\"name\":\"f\",\"arguments\":{\"x\":\"}\"}}}</tool_call>"),
            "|c1:f{\"x\":\"}\"}");
  EXPECT_EQ(parsed("hermes", "<tool_call>[{\"name\":\"f\"}, {\"name\":\"g\"}]</tool_call>"), "|f{}|g{}");
  EXPECT_EQ(parsed("hermes", "<tool_call>\n{\"name\":\"f\"}\n{\"name\":\"g\"}\n</tool_call>"), "|f{}|g{}");
  EXPECT_EQ(parsed("hermes", "<tool_call>\n```json\n{\"name\":\"f\"}\n```\n</tool_call>x"), "x|f{}");
}

TEST(Calls, WhatIsNoCallIsContent) {
  for (const std::string text : {
           "A <tool_call> is a tag.",
           "<tool_call>",
           " \n<tool_call> \n",
           "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}",
           "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 01}}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1e999}}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": \"not json\"}</tool_call>",
           "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>",
           "<tool_call>{\"name\": 5}</tool_call>",
           "<tool_call>{\"arguments\": {}}</tool_call>",
           "<tool_call>{\"name\": \"f\", 'arguments': {}}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": {}, \"arguments\": {\"x\":1}}</tool_call>",
           "<tool_call>{\"name\": \"f\",}</tool_call>",
           "<tool_call>[]</tool_call>",
           "<tool_call></tool_call>",
           "<tool_call>\n```json\n```</tool_call>",
       }) {
    EXPECT_EQ(parsed("hermes", text), text);
  }
  const std::string bad_utf8 = "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"\xff\"}}</tool_call>";
  EXPECT_EQ(parsed("hermes", bad_utf8), bad_utf8);
  // A broken call does not hide a whole one after it.
  EXPECT_EQ(parsed("hermes", "<tool_call>{oops}</tool_call>\n<tool_call>{\"name\":\"f\"}</tool_call>"),
            "<tool_call>{oops}</tool_call>|f{}");
  EXPECT_EQ(parsed("hermes", "<tool_call>{\"name\":<tool_call>{\"name\":\"f\"}</tool_call>"),
            "<tool_call>{\"name\":|f{}");
  EXPECT_EQ(parsed("hermes", "<tool_call>{\"name\":\"f\"} and </tool_call>"), "and </tool_call>|f{}");
  EXPECT_EQ(parsed("hermes", "<tool_call>{\"name\":\"f\"}</tool_call>", {.parse_calls = false}),
            "<tool_call>{\"name\":\"f\"}</tool_call>");
}

TEST(Calls, Mistral) {
  EXPECT_EQ(parsed("mistral", "Hi[TOOL_CALLS]f[ARGS]{\"s\": \"x\"}[TOOL_CALLS]g[CALL_ID]c12345678[ARGS]{}"),
            "Hi|f{\"s\": \"x\"}|c12345678:g{}");
  EXPECT_EQ(parsed("mistral",
                   "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"s\": \"x\"}}, "
                   "{\"id\": \"c2\", \"name\": \"g\", \"arguments\": {}}]"),
            "|f{\"s\": \"x\"}|c2:g{}");
  EXPECT_EQ(parsed("mistral", "[TOOL_CALLS]f{\"s\": 1}"), "|f{\"s\": 1}");
  EXPECT_EQ(parsed("mistral", "[TOOL_CALLS] of course"), "[TOOL_CALLS] of course");
}

TEST(Calls, DeepSeek) {
  EXPECT_EQ(parsed("deepseek",
                   "a</think>\n\nHi<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
                   "{\"s\": \"x\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n"
                   "{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
                   thinking()),
            "(a)Hi|f{\"s\": \"x\"}|g{}");
  EXPECT_EQ(parsed("deepseek",
                   "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"s\": 1}<｜tool▁call▁end｜>"
                   "<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
            "|f{\"s\": 1}|g{}");
  EXPECT_EQ(parsed("deepseek", "<｜tool▁calls▁begin｜>oh"), "<｜tool▁calls▁begin｜>oh");
  EXPECT_EQ(
      parsed(
          "deepseek-dsml",
          "Hi\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"s\" string=\"true\">"
          "7</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">[7]</｜DSML｜parameter>\n"
          "</｜DSML｜invoke>\n</｜DSML｜function_calls>"),
      "Hi|f{\"s\": \"7\", \"n\": [7]}");
}

TEST(Calls, Tagged) {
  const std::string call =
      "<tool_call>\n<function=f>\n<parameter=s>\n12\n</parameter>\n<parameter=n>\n12\n</parameter>\n"
      "<parameter=o>\n{\"a\": [1]}\n</parameter>\n</function>\n</tool_call>";
  EXPECT_EQ(parsed("qwen3-coder", "Ok\n" + call, with_tools()), "Ok|f{\"s\": \"12\", \"n\": 12, \"o\": {\"a\": [1]}}");
  EXPECT_EQ(parsed("qwen3-coder", call), "|f{\"s\": 12, \"n\": 12, \"o\": {\"a\": [1]}}");  // no schema to ask
  EXPECT_EQ(parsed("qwen3-coder", "<function=f><parameter=s>\nline \"one\"\n\n  é</b>\n\n</parameter></function>",
                   with_tools()),
            "|f{\"s\": \"line \\\"one\\\"\\n\\n  é</b>\\n\"}");
  EXPECT_EQ(parsed("qwen3-coder", "<tool_call>\n<function=g>\n</function>\n</tool_call>"), "|g{}");
  EXPECT_EQ(parsed("qwen3-coder", "<tool_call><function=f><parameter=n>True</parameter></function></tool_call>"),
            "|f{\"n\": true}");
  EXPECT_EQ(parsed("qwen3-coder",
                   "<tool_call><function=f><parameter=o>{'a': [1, None, \"it's\", ('x',)], 'b': {}, }</parameter>"
                   "<parameter=n>['a', </parameter></function></tool_call>",
                   with_tools()),
            "|f{\"o\": {\"a\": [1, null, \"it's\", [\"x\"]], \"b\": {}}, \"n\": \"['a', \"}");
  const std::string cut = "<tool_call>\n<function=f>\n<parameter=s>\nnever ends";
  EXPECT_EQ(parsed("qwen3-coder", cut, with_tools()), cut);
  EXPECT_EQ(
      parsed("seed", "<seed:tool_call>\n<function=f>\n<parameter=s>x</parameter>\n</function>\n</seed:tool_call>"),
      "|f{\"s\": \"x\"}");
  EXPECT_EQ(parsed("minimax",
                   "Ok\n<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"s\">x y</parameter>\n"
                   "<parameter name=\"n\">5</parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n"
                   "</minimax:tool_call>",
                   with_tools()),
            "Ok|f{\"s\": \"x y\", \"n\": 5}|g{}");
  EXPECT_EQ(parsed("glm",
                   "</think>Ok<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>5</arg_value>\n<arg_key>n</arg_key>\n"
                   "<arg_value>5</arg_value>\n</tool_call>",
                   with_tools()),
            "Ok|f{\"s\": \"5\", \"n\": 5}");
  EXPECT_EQ(parsed("glm", "<tool_call>g</tool_call><tool_call>{\"name\":\"f\"}</tool_call>"), "|g{}|f{}");
}

TEST(Calls, AStringParameterStreams) {
  AnswerParser p(format("qwen3-coder"), with_tools());
  std::string seen;
  for (const auto& e : p.push("<tool_call>\n<function=f>\n<parameter=s>\n0123456789 0123456789 0123456789")) {
    if (e.kind == AnswerEvent::Kind::kCallArguments) seen += e.text;
  }
  EXPECT_EQ(seen, "{\"s\": \"0123456789 01234567");
}

TEST(Calls, ArgumentsStreamAsTheyCome) {
  AnswerParser p(format("hermes"));
  EXPECT_TRUE(p.push("<tool_call>\n{\"name\": \"f\", \"arguments\":").empty());
  const auto begin = p.push(" {\"a\"");
  ASSERT_EQ(begin.size(), 2u);
  EXPECT_EQ(begin[0].kind, AnswerEvent::Kind::kCallBegin);
  EXPECT_EQ(begin[0].text, "f");
  EXPECT_EQ(begin[1].text, "{\"a\"");
  const auto more = p.push(": 1}}");
  ASSERT_EQ(more.size(), 2u);
  EXPECT_EQ(more[0].text, ": 1}");
  EXPECT_EQ(more[1].kind, AnswerEvent::Kind::kCallEnd);
  EXPECT_TRUE(p.push("\n</tool_call>").empty());
  EXPECT_TRUE(p.finish().empty());
}

TEST(Calls, ADroppedCallComesBackAsText) {
  AnswerParser p(format("hermes"));
  p.push("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ");
  const auto events = p.push("oops} x");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, AnswerEvent::Kind::kCallDropped);
  EXPECT_EQ(events[1].text, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": oops} x");
}

TEST(Calls, Llama) {
  EXPECT_EQ(parsed("llama3", "{\"name\": \"f\", \"parameters\": {\"s\": \"x\"}}", with_tools()), "|f{\"s\": \"x\"}");
  EXPECT_EQ(parsed("llama3", " {\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\"}",
                   with_tools()),
            "|f{}|g{}");
  EXPECT_EQ(parsed("llama3", "<|python_tag|>f.call(s=\"a b\", n=3)", with_tools()), "|f{\"s\": \"a b\", \"n\": 3}");
  EXPECT_EQ(parsed("llama3", "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"n\": 3}}"), "|f{\"n\": 3}");
  // An answer that is JSON of another kind, or names no tool of the request, or has no tools at all.
  for (const std::string text : {"{\"name\": \"Ann\", \"age\": 3}", "{\"name\": \"f\", \"age\": 3}", "{}", "{\"a\": 1}",
                                 "{\"name\": \"other\", \"parameters\": {}}", "[1, 2]", "{"}) {
    EXPECT_EQ(parsed("llama3", text, with_tools()), text);
  }
  EXPECT_EQ(parsed("llama3", "{\"name\": \"f\", \"parameters\": {}}"), "{\"name\": \"f\", \"parameters\": {}}");
  EXPECT_EQ(parsed("llama3", "So: {\"name\": \"f\"}", with_tools()), "So: {\"name\": \"f\"}");
  EXPECT_EQ(parsed("generic", "[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\"}]", with_tools()), "|f{}|g{}");
  EXPECT_EQ(parsed("llama4", "[f(s='it\\'s', n=-1.5), g(a=[True, None, {'k': (1, 2)}])]", with_tools()),
            "|f{\"s\": \"it's\", \"n\": -1.5}|g{\"a\": [true, null, {\"k\": [1, 2]}]}");
  EXPECT_EQ(parsed("llama4", "[link](http://x) [f](y)", with_tools()), "[link](http://x) [f](y)");
  EXPECT_EQ(parsed("llama4", "<|python_start|>[g()]<|python_end|>"), "|g{}");
}

TEST(Calls, Harmony) {
  EXPECT_EQ(
      parsed("harmony",
             "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>"),
      "(hm)Hello");
  const std::string call =
      "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.f "
      "<|constrain|>json<|message|>{\"s\": \"<|end|>\"}<|call|>";
  EXPECT_EQ(parsed("harmony", call), "(hm)|f{\"s\": \"<|end|>\"}");
  EXPECT_EQ(parsed("harmony", call.substr(0, call.size() - 8)), "(hm)|f{\"s\": \"<|end|>\"}");
  EXPECT_EQ(parsed("harmony",
                   "<|channel|>analysis<|message|>hm<|end|><|start|>assistant to=functions.f<|channel|>commentary "
                   "json<|message|>{}<|call|>"),
            "(hm)|f{}");
  EXPECT_EQ(parsed("harmony", " to=functions.f<|channel|>commentary json<|message|>{}"), "|f{}");
  EXPECT_EQ(parsed("harmony",
                   "<|channel|>commentary<|message|>First this.<|end|><|start|>assistant<|channel|>final<|message|>x"),
            "First this.x");
  EXPECT_EQ(parsed("harmony", "plain text"), "plain text");
  EXPECT_EQ(parsed("harmony", "<|channel|>never a message"), "<|channel|>never a message");
  EXPECT_EQ(parsed("harmony", " told you"), " told you");
}

TEST(Calls, GemmaAndPython) {
  EXPECT_EQ(
      parsed("gemma4",
             "<|tool_call>call:f{s:<|\"|>a \"b\", {c}<|\"|>,n:[1,-2.5e3,true,None,{x:<|\"|><|\"|>}],o:{}}<tool_call|>"
             "<|tool_call>call:g{}<tool_call|>Done"),
      "Done|f{\"s\": \"a \\\"b\\\", {c}\", \"n\": [1, -2.5e3, true, null, {\"x\": \"\"}], \"o\": {}}|g{}");
  EXPECT_EQ(parsed("gemma4", "<|tool_call>call:f{n:01}<tool_call|>"), "<|tool_call>call:f{n:01}<tool_call|>");
  EXPECT_EQ(parsed("gemma3", "Sure:\n```tool_code\nf(s=\"x\")\n```"), "Sure:|f{\"s\": \"x\"}");
  EXPECT_EQ(parsed("lfm2", "<|tool_call_start|>[f(s=\"x\", n=1), g()]<|tool_call_end|>Checking."),
            "Checking.|f{\"s\": \"x\", \"n\": 1}|g{}");
  const std::string bad = "<|tool_call_start|>[f(s=open('x'))]<|tool_call_end|>";
  EXPECT_EQ(parsed("lfm2", bad), bad);
}

TEST(Calls, OtherFamilies) {
  EXPECT_EQ(parsed("command-r",
                   "Plan: look.\nAction: ```json\n[\n    {\n        \"tool_name\": \"f\",\n"
                   "        \"parameters\": {\"s\": 1}\n    }\n]\n```"),
            "Plan: look.|f{\"s\": 1}");
  EXPECT_EQ(parsed("command-r7b",
                   "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"f\", "
                   "\"parameters\": {\"s\": 1}}\n]<|END_ACTION|>"),
            "|0:f{\"s\": 1}");
  EXPECT_EQ(parsed("functionary-v3.1", "Hm<function=f>{\"s\": 1}</function><function=g>{}</function>"),
            "Hm|f{\"s\": 1}|g{}");
  EXPECT_EQ(parsed("functionary-v3.2", "all\nHello >>> x>>>f\n{\"s\": 1}"), "Hello >>> x|f{\"s\": 1}");
  EXPECT_EQ(parsed("functionary-v3.2", "f\n{\"s\": 1}>>>g\n{}", with_tools()), "|f{\"s\": 1}|g{}");
  EXPECT_EQ(parsed("functionary-v3.2", "Hello"), "Hello");
  EXPECT_EQ(
      parsed("kimi-k2",
             "Ok<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"s\": 1}"
             "<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
             "<|tool_calls_section_end|>"),
      "Ok|functions.f:0:f{\"s\": 1}|functions.g:1:g{}");
  EXPECT_EQ(parsed("solar",
                   "<|tool_calls|><|tool_call:begin|>c1<|tool_call:name|>f<|tool_call:args|>{\"s\": 1}<|tool_call:end|>"
                   "<|tool_call:begin|>c2<|tool_call:name|>g<|tool_call:args|>{}<|tool_call:end|><|calls|>"),
            "|c1:f{\"s\": 1}|c2:g{}");
  EXPECT_EQ(parsed("granite", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"s\": 1}}]"), "|f{\"s\": 1}");
  EXPECT_EQ(parsed("granite", "<|tool_call|>[{\"name\": \"f\"}]<|/tool_call|>"), "|f{}");
  EXPECT_EQ(parsed("apertus", "<|tools_prefix|>[{\"f\": {\"s\": 1}}, {\"g\": {}}]<|tools_suffix|>"),
            "|f{\"s\": 1}|g{}");
  EXPECT_EQ(parsed("gigachat", "Ok<|function_call|>{\"name\": \"f\", \"arguments\": {\"s\": 1}}"), "Ok|f{\"s\": 1}");
  EXPECT_EQ(parsed("nemotron", "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {}}]</TOOLCALL>"), "|f{}");
  EXPECT_EQ(parsed("internlm", "<|action_start|><|plugin|>{\"name\": \"f\", \"parameters\": {}}<|action_end|>"),
            "|f{}");
  EXPECT_EQ(
      parsed("mcp",
             "Ok\n<use_mcp_tool>\n<server_name>s</server_name>\n<tool_name>f</tool_name>\n<arguments>\n{\"s\": 1}\n"
             "</arguments>\n</use_mcp_tool>"),
      "Ok|f{\"s\": 1}");
}

TEST(Calls, EmptySectionsAreContent) {
  const std::pair<const char*, const char*> sections[] = {
      {"mcp", "<use_mcp_tool></use_mcp_tool>"},
      {"deepseek", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>"},
      {"kimi-k2", "<|tool_calls_section_begin|><|tool_calls_section_end|>"},
      {"command-r7b", "<|START_ACTION|><|END_ACTION|>"},
      {"minimax", "<minimax:tool_call></minimax:tool_call>"},
      {"lfm2", "<|tool_call_start|>[]<|tool_call_end|>"},
      {"gemma4", "<|tool_call><tool_call|>"},
      {"glm", "<tool_call></tool_call>"},
      {"apertus", "<|tools_prefix|>[]<|tools_suffix|>"},
  };
  for (const auto& [name, text] : sections) EXPECT_EQ(parsed(name, text), text) << name;
}

TEST(AnswerFormat, IsNamedOrDetected) {
  EXPECT_EQ(AnswerFormat::detect("").name(), "generic");
  EXPECT_EQ(AnswerFormat::detect("... <tool_call> ...").name(), "hermes");
  EXPECT_EQ(AnswerFormat::detect("{{ '[TOOL_CALLS]' }}").name(), "mistral");
  EXPECT_EQ(AnswerFormat::detect("<|start|> <|channel|> <|message|>").name(), "harmony");
  const auto wrong = AnswerFormat::named("chatgpt");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("expected one of harmony, gemma4"), std::string::npos);
}

TEST(AnswerFormat, KnowsItsControlTokens) {
  EXPECT_TRUE(format("hermes").knows("<tool_call>"));
  EXPECT_TRUE(format("hermes").knows("</think>"));
  EXPECT_TRUE(format("gemma4").knows("<|\"|>"));
  EXPECT_TRUE(format("gemma4", "<|channel>").knows("<|channel>"));
  EXPECT_FALSE(format("hermes").knows("<|im_end|>"));
  AnswerParser p(format("harmony"));
  ParsedAnswer a;
  for (const char* token : {"<|channel|>", "<|endoftext|>", "<|message|>", "<|end|>"}) {
    a.add(p.push_control(token));
    if (std::string_view(token) == "<|channel|>") a.add(p.push("analysis"));
    if (std::string_view(token) == "<|message|>") a.add(p.push("hm"));
  }
  a.add(p.finish());
  EXPECT_EQ(a.reasoning, "hm");
  EXPECT_EQ(a.content, "");
}

// Texts made of the formats' own pieces, which go wrong in every way.
TEST(AnswerProperty, NothingIsLostAndCutsDoNotMatter) {
  const std::vector<std::string> common = {"{\"name\": \"f\", \"arguments\": {\"s\": 1}}",
                                           "{",
                                           "}",
                                           "[",
                                           "]",
                                           "\"",
                                           "f",
                                           "g(",
                                           ")",
                                           "s",
                                           "=",
                                           ",",
                                           ":",
                                           " ",
                                           "\n",
                                           "é",
                                           "{\"s\": \"x\"}",
                                           "{\"name\": \"f\"}",
                                           "{\"name\": \"g\"}",
                                           "```json\n",
                                           "```",
                                           "<think>",
                                           "</think>",
                                           "null",
                                           "to=functions.f",
                                           "json",
                                           "\\",
                                           "name"};
  std::mt19937 rng(11);
  int calls = 0;
  for (const std::string_view name : AnswerFormat::names()) {
    const AnswerFormat f = format(name, "<|START_RESPONSE|> [THINK] <|channel>");
    std::vector<std::string> pieces = common;
    for (const auto& s : f.calls()) {
      for (const std::string_view p :
           {s.open, s.close, s.each_open, s.name_end, s.each_close, s.id_mark, s.function_open, s.function_name_end,
            s.function_close, s.parameter_open, s.parameter_name_end, s.parameter_close}) {
        if (!p.empty()) pieces.insert(pieces.end(), 3, std::string(p));
      }
    }
    for (const auto& r : f.reasoning()) pieces.insert(pieces.end(), {std::string(r.open), std::string(r.close)});
    for (int round = 0; round < 400; ++round) {
      std::string text;
      for (size_t n = rng() % 14; n > 0; --n) text += pieces[rng() % pieces.size()];
      AnswerOptions options;
      options.thinking_open = rng() % 4 == 0;
      options.parse_reasoning = rng() % 8 != 0;
      if (rng() % 2 == 0) options.tools = tools();
      ParsedAnswer a;
      ASSERT_EQ(testing::check_answer(f, text, options, rng(), a), "") << name << ": " << text;
      calls += static_cast<int>(a.calls.size());
    }
  }
  EXPECT_GT(calls, 100);
}

// None of these may cost more than its bytes: each opens what an earlier attempt would read to the end.
TEST(AnswerProperty, HostileAnswersAreLinear) {
  const auto many = [](std::string_view piece) {
    std::string out;
    while (out.size() < 300'000) out += piece;
    return out;
  };
  ParsedAnswer a;
  for (const char* piece :
       {"<tool_call>", "<function=f><parameter=s>", "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"",
        "<tool_call><function=f><parameter=s>x</parameter>", " ", "\n<", "<think>x", "{"}) {
    const std::string text = many(piece);
    for (const char* name : {"qwen3-coder", "hermes", "glm", "generic"}) {
      a = parse_answer(format(name), text, with_tools());
      EXPECT_GE(a.content.size() + a.reasoning.size() + 8, text.size()) << name << " " << piece;
    }
  }
  const std::string deep = "<|tool_call>call:f{a:" + std::string(200'000, '[');
  EXPECT_EQ(parse_answer(format("gemma4"), deep).content, deep);
  const std::string deep_python = "<|tool_call_start|>[f(a=" + std::string(200'000, '(');
  EXPECT_EQ(parse_answer(format("lfm2"), deep_python).content, deep_python);
  const std::string deep_json = "<tool_call>{\"name\":\"f\",\"arguments\":" + many("{\"a\":");
  EXPECT_EQ(parse_answer(format("hermes"), deep_json).content, deep_json);
}

}  // namespace
}  // namespace minfer::chat
