// Real templates (where the folder of cases is present): an assistant's message with calls and reasoning is rendered by
// the template and parsed back by the format its source gives away.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "chat/answer/answer.h"
#include "chat/chat_template.h"
#include "chat/json.h"
#include "chat/testing/answer_check.h"

namespace minfer::chat {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

constexpr const char* kTools = R"([
  {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}},
  {"type": "function", "function": {"name": "search", "description": "Finds notes.", "parameters": {"type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}, "tags": {"type": "array"},
                   "filter": {"type": "object"}, "exact": {"type": "boolean"}}, "required": ["query"]}}}])";

// The second call is left out for templates that take one only.
constexpr const char* kMessages = R"([
  {"role": "user", "content": "Weather in Oslo, and find notes?"},
  {"role": "assistant", "content": "Let me check.", "reasoning_content": "I need two tools.", "tool_calls": [
    {"id": "functions.get_weather:0", "type": "function", "function": {"name": "get_weather", "arguments":
      {"city": "Oslo, Norge – Ø", "days": 3}}},
    {"id": "functions.search:1", "type": "function", "function": {"name": "search", "arguments":
      {"query": "ski \"wax\" <b>\n  second line", "limit": 3, "tags": ["a", "b"], "filter": {"score": 0.5, "after": null, "deep":
      {"x": [true, false, 1.0, -2, 1e-07]}}, "exact": true}}}]}])";

// What ends an answer in the template's text; a model's end token, never part of the text that is parsed.
constexpr const char* kEnds[] = {"<|im_end|>",
                                 "<|eot_id|>",
                                 "<|eom_id|>",
                                 "</s>",
                                 "<|end|>",
                                 "<|END_OF_TURN_TOKEN|>",
                                 "<｜end▁of▁sentence｜>",
                                 "<turn|>",
                                 "<|tool_response>",
                                 "<sep>",
                                 "<|observation|>",
                                 "<|assistant_end|>",
                                 "<|user|>",
                                 "<seed:eos>",
                                 "[e~[",
                                 "</assistant>",
                                 "<end_of_sentence>",
                                 "<|end_of_text|>",
                                 "<|role_end|>",
                                 "<|eom|>",
                                 "<SPECIAL_12>",
                                 "<|return|>"};
// What a generation prompt may open although a finished message has it differently.
constexpr const char* kOpened[] = {"<think>\n\n</think>\n\n",
                                   "<think></think>",
                                   "<think>\n</think>",
                                   "<think>\n",
                                   "<think>",
                                   "<|channel>thought\n<channel|>",
                                   "Here are my reasoning steps:\n",
                                   "<|START_THINKING|><|END_THINKING|>",
                                   "<|START_THINKING|>",
                                   "</think>"};

struct Variant {
  size_t n_calls;
  bool string_arguments;
  int content;     // text, empty, null
  bool short_ids;  // nine characters, which Mistral asks for
};

// Every combination; strings of JSON and null are for templates that print no dict and no call beside content.
std::vector<Variant> variants() {
  std::vector<Variant> out;
  for (const bool string_arguments : {false, true}) {
    for (const bool short_ids : {false, true}) {
      for (int content = 0; content < 3; ++content) {
        for (const size_t n_calls : {2, 1}) out.push_back({n_calls, string_arguments, content, short_ids});
      }
    }
  }
  return out;
}

Value messages_of(const Variant& v) {
  const Value all = *parse_json(kMessages);
  Dict answer = all.items()[1].as_dict();
  std::vector<Value> calls;
  for (size_t i = 0; i < v.n_calls; ++i) {
    const Value call = answer.find("tool_calls")->items()[i];
    Dict function = call.find("function")->as_dict();
    if (v.string_arguments) function.set("arguments", Value::string(*dump_json(*function.find("arguments"))));
    Dict copy = call.as_dict();
    if (v.short_ids) copy.set("id", Value::string("call0000" + std::to_string(i)));
    copy.set("function", Value::dict(std::move(function)));
    calls.push_back(Value::dict(std::move(copy)));
  }
  answer.set("tool_calls", Value::list(std::move(calls)));
  if (v.content > 0) answer.set("content", v.content == 1 ? Value::string("") : Value::none());
  return Value::list({all.items()[0], Value::dict(std::move(answer))});
}

std::string rendered(const ChatTemplate& t, const Value& messages, bool prompt, bool& thinking_open) {
  RenderOptions options;
  options.tools = *parse_json(kTools);
  options.add_generation_prompt = prompt;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  options.now = std::tm{.tm_mday = 15, .tm_year = 126, .tm_wday = 4, .tm_yday = 14};
  auto r = t.render(messages, options);
  if (!r.ok()) {  // some templates cannot print definitions, in Hugging Face's library neither
    options.tools = Value::none();
    r = t.render(messages, options);
  }
  if (!r.ok()) return {};  // some refuse some of the variants
  thinking_open = r->thinking_open;
  return r->text();
}

TEST(RoundTrip, CallsAsRealTemplatesPrintThemParseBack) {
  const char* env = std::getenv("MINFER_CASES");
  const fs::path dir = (env != nullptr ? fs::path(env) : fs::path(MINFER_SOURCE_DIR) / ".." / "shared" / "cases") /
                       "templates" / "jinja";
  if (!fs::exists(dir)) GTEST_SKIP() << dir << " is absent; set MINFER_CASES";
  int with_calls = 0, back = 0, without = 0;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string source = read_file(entry.path());
    const std::string name = entry.path().stem().string();
    const auto t = ChatTemplate::parse(source);
    ASSERT_TRUE(t.ok()) << name;
    const AnswerFormat format = AnswerFormat::detect(source);
    bool printed = false;
    for (const Variant& v : variants()) {
      if (printed && (v.string_arguments || v.content == 2)) continue;
      const Value messages = messages_of(v);
      bool open = false, unused = false;
      std::string prompt = rendered(*t, Value::list({messages.items()[0]}), true, open);
      const std::string whole = rendered(*t, messages, false, unused);
      if (whole.empty() || prompt.empty()) continue;
      if (!whole.starts_with(prompt)) {
        for (const char* opened : kOpened) {
          if (!prompt.ends_with(opened)) continue;
          const std::string shorter = prompt.substr(0, prompt.size() - std::string_view(opened).size());
          if (!whole.starts_with(shorter)) continue;
          prompt = shorter;
          // Apriel's template leaves out its opening words where there is reasoning after them.
          open = std::string_view(opened).starts_with("Here") &&
                 whole.find("[BEGIN FINAL RESPONSE]\n", shorter.size()) != whole.npos;
          break;
        }
      }
      if (whole.size() < prompt.size()) continue;  // prints nothing of the answer
      if (!whole.starts_with(prompt)) {
        ADD_FAILURE() << name << ": the rendering does not go on from the prompt\n" << prompt << "\n---\n" << whole;
        continue;
      }
      std::string text = whole.substr(prompt.size());
      for (const char* end : kEnds) text.resize(std::min(text.size(), text.find(end)));
      if (text.find("get_weather") == text.npos) continue;  // this template prints no calls
      printed = true;
      ++with_calls;
      ParsedAnswer a;
      const std::string wrong =
          testing::check_answer(format, text, {.thinking_open = open, .tools = *parse_json(kTools)}, 3, a);
      EXPECT_EQ(wrong, "") << name;
      // Some templates print the first call only.
      const size_t n_printed = text.find("search") != text.npos ? v.n_calls : 1;
      bool same = wrong.empty() && a.calls.size() == n_printed;
      for (size_t i = 0; same && i < n_printed; ++i) {
        const Value expected = *parse_json(kMessages)->items()[1].find("tool_calls");
        const Value& function = *expected.items()[i].find("function");
        same = a.calls[i].name == function.find("name")->as_string() &&
               equal(*parse_json(a.calls[i].arguments), *function.find("arguments")) &&
               (a.calls[i].id.empty() || text.find(a.calls[i].id) != text.npos);
      }
      const bool shows = text.find("Let me check.") != text.npos;
      const bool thinks = text.find("I need two tools.") != text.npos;
      const std::string content = a.content.substr(a.content.starts_with(' ') ? 1 : 0);  // after "assistant:"
      same = same && content == (shows ? "Let me check." : "") && a.reasoning == (thinks ? "I need two tools." : "");
      back += same ? 1 : 0;
      EXPECT_TRUE(same) << name << " (" << format.name() << "), " << a.calls.size() << " of " << v.n_calls
                        << " calls:\n{" << text << "}\nreasoning {" << a.reasoning << "} content {" << a.content << "}";
    }
    without += printed ? 0 : 1;
    if (!printed) std::printf("[ answers ] %s prints no calls\n", name.c_str());
  }
  std::printf("[ answers ] %d of %d answers with calls parsed back; %d templates print none\n", back, with_calls,
              without);
  EXPECT_EQ(back, with_calls);
  EXPECT_GT(with_calls, 60);
}

}  // namespace
}  // namespace minfer::chat
