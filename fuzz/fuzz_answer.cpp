// Layers: chat
// Fuzzes the parsers of answers. The first byte picks the format, the second the options, the rest is the answer, in
// which a byte from 0xC0 on stands for one of the format's markers or a piece of JSON. It is parsed whole, byte by byte
// and cut at random, streamed and complete, which must not matter; nothing may be lost, and the arguments of every call
// must be a JSON object.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer/answer.h"
#include "chat/json.h"
#include "chat/testing/answer_check.h"

using namespace minfer;

namespace {

// Markers are too long to be found by chance.
std::string expand(const chat::AnswerFormat& format, std::string_view in) {
  std::vector<std::string_view> pieces = {"{\"name\": \"f\", \"arguments\": ",
                                          "{\"s\": 1}",
                                          "}",
                                          "f",
                                          "\"id\": ",
                                          "null",
                                          "```json\n",
                                          "to=functions.f",
                                          "<arg_key>",
                                          "</arg_key>",
                                          "<arg_value>",
                                          "</arg_value>",
                                          "<|\"|>",
                                          "call:f{"};
  for (const auto& s : format.calls()) {
    for (const std::string_view p :
         {s.open, s.close, s.each_open, s.name_end, s.each_close, s.id_mark, s.id_end, s.function_open,
          s.function_name_end, s.function_close, s.parameter_open, s.parameter_name_end, s.parameter_close}) {
      if (!p.empty()) pieces.push_back(p);
    }
  }
  for (const auto& r : format.reasoning()) pieces.insert(pieces.end(), {r.open, r.close});
  for (const std::string_view s : format.silent()) pieces.push_back(s);
  std::string out;
  for (const char c : in) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0xC0) {
      out += c;
    } else {
      out += pieces[(byte - 0xC0) % pieces.size()];
    }
  }
  return out;
}

}  // namespace

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
  const std::string text = expand(*format, std::string_view(reinterpret_cast<const char*>(data) + 2, size - 2));
  chat::ParsedAnswer answer;
  const std::string wrong = chat::testing::check_answer(*format, text, options, data[1], answer);
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s: %s\n", std::string(format->name()).c_str(), wrong.c_str());
    std::abort();
  }
  return 0;
}
