// Layers: chat
// Fuzzes the parsers of answers. The first byte picks the format, the second the options, the rest is the answer; it is
// parsed whole, byte by byte and cut at random, streamed and complete, which must not matter; nothing may be lost, and
// the arguments of every call must be a JSON object.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "chat/answer/answer.h"
#include "chat/json.h"
#include "chat/testing/answer_check.h"

using namespace minfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const auto names = chat::AnswerFormat::names();
  static const chat::Value tools = *chat::parse_json(
      R"([{"name":"f","parameters":{"properties":{"s":{"type":"string"},"n":{"type":"integer"}}}},{"name":"g"}])");
  // The source gives every marker of reasoning to every format.
  const auto format = chat::AnswerFormat::named(names[data[0] % names.size()],
                                                "<thinking> <seed:think> [THINK] <|START_THINKING|> <|inner_prefix|> "
                                                "<|channel> [BEGIN FINAL RESPONSE] <|START_TEXT|>");
  if (!format.ok()) std::abort();
  chat::AnswerOptions options;
  options.thinking_open = data[1] & 1;
  options.parse_reasoning = !(data[1] & 2);
  options.parse_calls = !(data[1] & 4);
  options.stream_arguments = !(data[1] & 8);
  if (data[1] & 16) options.tools = tools;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  chat::ParsedAnswer answer;
  const std::string wrong = chat::testing::check_answer(*format, text, options, data[1], answer);
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s: %s\n", std::string(format->name()).c_str(), wrong.c_str());
    std::abort();
  }
  return 0;
}
