// The table of formats, what gives each away, and the markers of reasoning.
#include "chat/answer/format.h"

#include <span>

namespace minfer::chat {

using answer::Body;
using answer::CallSyntax;

namespace {

constexpr CallSyntax kBareJson = {.open = "", .body = Body::kJson};
constexpr CallSyntax kHermesCall = {.open = "<tool_call>", .body = Body::kJson, .close = "</tool_call>"};

constexpr CallSyntax kHarmony[] = {
    {.open = "<|channel|>", .body = Body::kHarmony, .close = "<|call|>"},
    {.open = "<|start|>", .body = Body::kHarmony, .close = "<|call|>"},
    {.open = "<|message|>", .body = Body::kHarmony, .close = "<|call|>"},
    {.open = "", .body = Body::kHarmony, .close = "<|call|>"},
};
constexpr CallSyntax kGemma4[] = {{.open = "<|tool_call>", .body = Body::kGemma, .close = "<tool_call|>"}};
constexpr CallSyntax kDsml[] = {
    {.open = "<｜DSML｜function_calls>",
     .body = Body::kTagged,
     .close = "</｜DSML｜function_calls>",
     .function_open = "<｜DSML｜invoke name=\"",
     .function_name_end = "\">",
     .function_close = "</｜DSML｜invoke>",
     .parameter_open = "<｜DSML｜parameter name=\"",
     .parameter_name_end = "\" string=\"",
     .parameter_close = "</｜DSML｜parameter>",
     .typed = true},
    {.open = "<｜DSML｜tool_calls>",
     .body = Body::kTagged,
     .close = "</｜DSML｜tool_calls>",
     .function_open = "<｜DSML｜invoke name=\"",
     .function_name_end = "\">",
     .function_close = "</｜DSML｜invoke>",
     .parameter_open = "<｜DSML｜parameter name=\"",
     .parameter_name_end = "\" string=\"",
     .parameter_close = "</｜DSML｜parameter>",
     .typed = true},
};
constexpr CallSyntax kDeepSeek[] = {{.open = "<｜tool▁calls▁begin｜>",
                                     .body = Body::kDeepSeek,
                                     .close = "<｜tool▁calls▁end｜>",
                                     .each_open = "<｜tool▁call▁begin｜>",
                                     .name_end = "<｜tool▁sep｜>",
                                     .each_close = "<｜tool▁call▁end｜>"}};
constexpr CallSyntax kKimi[] = {{.open = "<|tool_calls_section_begin|>",
                                 .body = Body::kNamed,
                                 .close = "<|tool_calls_section_end|>",
                                 .each_open = "<|tool_call_begin|>",
                                 .name_end = "<|tool_call_argument_begin|>",
                                 .each_close = "<|tool_call_end|>",
                                 .id_is_name = true}};
constexpr CallSyntax kSolar[] = {{.open = "<|tool_calls|>",
                                  .body = Body::kNamed,
                                  .close = "<|calls|>",
                                  .each_open = "<|tool_call:begin|>",
                                  .name_end = "<|tool_call:args|>",
                                  .each_close = "<|tool_call:end|>",
                                  .id_end = "<|tool_call:name|>"}};
constexpr CallSyntax kMistral[] = {
    {.open = "[TOOL_CALLS]", .body = Body::kNamed, .name_end = "[ARGS]", .id_mark = "[CALL_ID]"}};
constexpr CallSyntax kMiniMax[] = {{.open = "<minimax:tool_call>",
                                    .body = Body::kTagged,
                                    .close = "</minimax:tool_call>",
                                    .function_open = "<invoke name=\"",
                                    .function_name_end = "\">",
                                    .function_close = "</invoke>",
                                    .parameter_open = "<parameter name=\"",
                                    .parameter_name_end = "\">",
                                    .parameter_close = "</parameter>"}};
constexpr CallSyntax kSeed[] = {{.open = "<seed:tool_call>",
                                 .body = Body::kTagged,
                                 .close = "</seed:tool_call>",
                                 .function_open = "<function=",
                                 .function_name_end = ">",
                                 .function_close = "</function>",
                                 .parameter_open = "<parameter=",
                                 .parameter_name_end = ">",
                                 .parameter_close = "</parameter>",
                                 .trim_lines = true}};
constexpr CallSyntax kQwenCoder[] = {
    {.open = "<tool_call>",
     .body = Body::kTagged,
     .close = "</tool_call>",
     .function_open = "<function=",
     .function_name_end = ">",
     .function_close = "</function>",
     .parameter_open = "<parameter=",
     .parameter_name_end = ">",
     .parameter_close = "</parameter>",
     .trim_lines = true},
    {.open = "<function=",  // the models leave <tool_call> out now and then
     .body = Body::kTagged,
     .function_open = "<function=",
     .function_name_end = ">",
     .function_close = "</function>",
     .parameter_open = "<parameter=",
     .parameter_name_end = ">",
     .parameter_close = "</parameter>",
     .trim_lines = true},
};
constexpr CallSyntax kGlm[] = {{.open = "<tool_call>", .body = Body::kGlm, .close = "</tool_call>"}};
constexpr CallSyntax kFunctionary31[] = {
    {.open = "<function=", .body = Body::kNamed, .name_end = ">", .each_close = "</function>"}};
constexpr CallSyntax kFunctionary32[] = {{.open = ">>>", .body = Body::kRecipient},
                                         {.open = "", .body = Body::kRecipient}};
constexpr CallSyntax kCommandR7b[] = {{.open = "<|START_ACTION|>", .body = Body::kJson, .close = "<|END_ACTION|>"}};
constexpr CallSyntax kCommandR[] = {{.open = "Action:", .body = Body::kJson}};
constexpr CallSyntax kApertus[] = {{.open = "<|tools_prefix|>", .body = Body::kJsonByKey, .close = "<|tools_suffix|>"}};
constexpr CallSyntax kGranite[] = {{.open = "<|tool_call|>", .body = Body::kJson, .close = "<|/tool_call|>"},
                                   kHermesCall};
constexpr CallSyntax kLfm2[] = {{.open = "<|tool_call_start|>", .body = Body::kPython, .close = "<|tool_call_end|>"}};
constexpr CallSyntax kGigaChat[] = {{.open = "function call<|role_sep|>", .body = Body::kJson},
                                    {.open = "<|function_call|>", .body = Body::kJson}};
constexpr CallSyntax kApriel[] = {{.open = "<tool_calls>", .body = Body::kJson, .close = "</tool_calls>"}, kHermesCall};
constexpr CallSyntax kNemotron[] = {{.open = "<TOOLCALL>", .body = Body::kJson, .close = "</TOOLCALL>"}};
constexpr CallSyntax kInternLm[] = {
    {.open = "<|action_start|><|plugin|>", .body = Body::kJson, .close = "<|action_end|>"}};
constexpr CallSyntax kMcp[] = {{.open = "<use_mcp_tool>", .body = Body::kMcp, .close = "</use_mcp_tool>"}, kHermesCall};
constexpr CallSyntax kHermes[] = {kHermesCall};
constexpr CallSyntax kLlama4[] = {{.open = "<|python_start|>", .body = Body::kPython, .close = "<|python_end|>"},
                                  {.open = "", .body = Body::kPython},
                                  kBareJson};
constexpr CallSyntax kLlama3[] = {{.open = "<|python_tag|>", .body = Body::kPython}, kBareJson};
constexpr CallSyntax kGemma3[] = {{.open = "```tool_code", .body = Body::kPython, .close = "```"}, kBareJson};
constexpr CallSyntax kGeneric[] = {kHermesCall, kBareJson};

struct Known {
  std::string_view name;
  // All of them in a template give the format away; the first format of the table that is given away is taken.
  std::string_view markers[2];
  std::span<const CallSyntax> calls;
};

constexpr Known kKnown[] = {
    {"harmony", {"<|channel|>", "<|message|>"}, kHarmony},
    {"gemma4", {"<|tool_call>", "<|\"|>"}, kGemma4},
    {"deepseek-dsml", {"｜DSML｜"}, kDsml},
    {"deepseek", {"<｜tool▁calls▁begin｜>"}, kDeepSeek},
    {"kimi-k2", {"<|tool_call_argument_begin|>"}, kKimi},
    {"solar", {"<|tool_call:args|>"}, kSolar},
    {"mistral", {"[TOOL_CALLS]"}, kMistral},
    {"minimax", {"<minimax:tool_call>"}, kMiniMax},
    {"seed", {"seed:tool_call"}, kSeed},
    {"glm", {"<arg_key>"}, kGlm},
    {"qwen3-coder", {"<function=", "<parameter="}, kQwenCoder},
    {"functionary-v3.1", {"<function="}, kFunctionary31},
    {"functionary-v3.2", {">>>all"}, kFunctionary32},
    {"command-r7b", {"<|START_ACTION|>"}, kCommandR7b},
    {"command-r", {"Action:", "tool_name"}, kCommandR},
    {"apertus", {"<|tools_prefix|>"}, kApertus},
    {"granite", {"<|tool_call|>"}, kGranite},
    {"lfm2", {"<|tool_call_start|>"}, kLfm2},
    {"lfm2", {"<|tool_list_start|>"}, kLfm2},
    {"gigachat", {"<|role_sep|>", "function"}, kGigaChat},
    {"apriel", {"<tool_calls>"}, kApriel},
    {"nemotron", {"<TOOLCALL>"}, kNemotron},
    {"internlm", {"<|action_start|>"}, kInternLm},
    {"mcp", {"<use_mcp_tool>"}, kMcp},
    {"hermes", {"<tool_call>"}, kHermes},
    {"llama4", {"<|python_start|>"}, kLlama4},
    {"llama4", {"<|header_start|>", "tool"}, kLlama4},
    {"llama3", {"<|python_tag|>"}, kLlama3},
    {"llama3", {"<|start_header_id|>", "\"parameters\""}, kLlama3},
    {"gemma3", {"tool_code"}, kGemma3},
    {"generic", {}, kGeneric},  // takes every template
    {"none", {}, {}},           // never detected: no calls
};

struct Reasoning {
  std::string_view probe;  // in the template; "" for every template
  answer::ReasoningSyntax syntax;
};
constexpr Reasoning kReasoning[] = {
    {"", {"<think>", "</think>"}},
    {"thinking>", {"<thinking>", "</thinking>"}},
    {"thought>", {"<thought>", "</thought>"}},
    {"reasoning>", {"<reasoning>", "</reasoning>"}},
    {"seed:think", {"<seed:think>", "</seed:think>"}},
    {"[THINK]", {"[THINK]", "[/THINK]"}},
    {"<|START_THINKING|>", {"<|START_THINKING|>", "<|END_THINKING|>"}},
    {"<|inner_prefix|>", {"<|inner_prefix|>", "<|inner_suffix|>"}},
    {"<|channel>", {"<|channel>thought", "<channel|>"}},
    {"Here is my thought process:", {"Here is my thought process:", "Here is my response:"}},
    {"[BEGIN FINAL RESPONSE]", {"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"}},
};

constexpr std::string_view kSilent[] = {
    "<|START_RESPONSE|>", "<|END_RESPONSE|>",  "<|START_TEXT|>",       "<|END_TEXT|>",
    "<|message_sep|>",    "<|begin_content|>", "[END FINAL RESPONSE]",
};
constexpr std::string_view kHarmonySilent[] = {"<|end|>", "<|return|>", "<|call|>"};

bool holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

AnswerFormat AnswerFormat::detect(std::string_view source) {
  for (const Known& known : kKnown) {
    if (holds(source, known.markers[0]) && holds(source, known.markers[1])) return named(known.name, source).value();
  }
  return named("generic", source).value();
}

Result<AnswerFormat> AnswerFormat::named(std::string_view name, std::string_view source) {
  const Known* found = nullptr;
  for (const Known& known : kKnown) {
    if (known.name == name) found = &known;
  }
  if (found == nullptr) {
    std::string all;
    for (const std::string_view n : names()) all += (all.empty() ? "" : ", ") + std::string(n);
    return make_error(ErrorCode::kInvalidArgument, "[answer] no format is named '{}', expected one of {}", name, all);
  }
  AnswerFormat f;
  f.name_ = found->name;
  f.calls_.assign(found->calls.begin(), found->calls.end());
  if (f.name_ == "harmony") {
    f.silent_.assign(std::begin(kHarmonySilent), std::end(kHarmonySilent));
    return f;
  }
  for (const Reasoning& r : kReasoning) {
    if (holds(source, r.probe)) f.reasoning_.push_back(r.syntax);
  }
  for (const std::string_view s : kSilent) {
    if (holds(source, s)) f.silent_.push_back(s);
  }
  return f;
}

std::vector<std::string_view> AnswerFormat::names() {
  std::vector<std::string_view> out;
  for (const Known& known : kKnown) {
    if (out.empty() || out.back() != known.name) out.push_back(known.name);
  }
  return out;
}

bool AnswerFormat::knows(std::string_view token) const {
  if (token.empty()) return false;
  const auto in = [token](std::string_view literal) { return holds(literal, token); };
  for (const CallSyntax& s : calls_) {
    for (const std::string_view literal :
         {s.open, s.close, s.each_open, s.name_end, s.each_close, s.id_mark, s.id_end, s.function_open,
          s.function_name_end, s.function_close, s.parameter_open, s.parameter_name_end, s.parameter_close}) {
      if (in(literal)) return true;
    }
    if (s.body == Body::kHarmony && in("<|constrain|>")) return true;
    if (s.body == Body::kGemma && in("<|\"|>")) return true;
    if (s.body == Body::kGlm && (in("<arg_key></arg_key>") || in("<arg_value></arg_value>"))) return true;
  }
  for (const auto& r : reasoning_) {
    if (in(r.open) || in(r.close)) return true;
  }
  for (const std::string_view s : silent_) {
    if (in(s)) return true;
  }
  return false;
}

}  // namespace minfer::chat
