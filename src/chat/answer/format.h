// The ways in which families of models write reasoning and tool calls, as tables; chosen by the markers in the chat
// template, or by name.
// Errors:  an unknown name lists the known ones.
// Threads: immutable values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace minfer::chat {

namespace answer {

// How the text after a marker is read; one coroutine each (bodies.h).
enum class Body : uint8_t {
  kJson,       // {"name": ..., "arguments": {...}}, one or more, or a list of them
  kJsonByKey,  // [{"name": {arguments}}]
  kNamed,      // name, a separator, the arguments' JSON
  kDeepSeek,   // type, separator, name, fenced JSON; or name, separator, JSON
  kTagged,     // a tag for each parameter
  kGlm,        // name, then <arg_key> and <arg_value>
  kMcp,        // <server_name>, <tool_name>, <arguments>
  kGemma,      // call:name{key:<|"|>text<|"|>}
  kPython,     // name(key="value"), one or a list of them
  kRecipient,  // name or "all", a line break, JSON or text
  kHarmony,    // a header, <|message|>, text or JSON
};

struct CallSyntax {
  std::string_view open;  // the marker; "" for what stands at the beginning of an answer
  Body body = Body::kJson;
  std::string_view close = {};  // after the section, optional at the end of the text

  // kNamed, kDeepSeek: what stands before each call of a section, after its name, and after its arguments.
  std::string_view each_open = {}, name_end = {}, each_close = {};
  std::string_view id_mark = {};  // kNamed: the name ends here, an id follows, then name_end
  std::string_view id_end = {};   // kNamed: an id comes first and ends here
  bool id_is_name = false;        // kNamed: "functions.name:0" is the id and holds the name

  // kTagged: the tags around a function and a parameter; `typed` = name_end is followed by true or false and `">`.
  std::string_view function_open = {}, function_name_end = {}, function_close = {};
  std::string_view parameter_open = {}, parameter_name_end = {}, parameter_close = {};
  bool typed = false;
  bool trim_lines = false;  // one line break at either end of a value belongs to the tags
};

struct ReasoningSyntax {
  std::string_view open, close;
};

}  // namespace answer

class AnswerFormat {
 public:
  // By the markers a chat template (Jinja source) holds; without any, answers have <think> at most.
  static AnswerFormat detect(std::string_view template_source);
  // By name ("hermes", "mistral", "none", ...); the markers of reasoning still come from the template.
  static Result<AnswerFormat> named(std::string_view name, std::string_view template_source = {});
  static std::vector<std::string_view> names();

  std::string_view name() const { return name_; }
  const std::vector<answer::CallSyntax>& calls() const { return calls_; }
  const std::vector<answer::ReasoningSyntax>& reasoning() const { return reasoning_; }
  // Markers that mean nothing by themselves ("<|START_RESPONSE|>"): taken out.
  const std::vector<std::string_view>& silent() const { return silent_; }
  // Whether a token with this text must reach the parser although it is a control token.
  bool knows(std::string_view token) const;

 private:
  AnswerFormat() = default;
  std::string_view name_;
  std::vector<answer::CallSyntax> calls_;
  std::vector<answer::ReasoningSyntax> reasoning_;
  std::vector<std::string_view> silent_;
};

}  // namespace minfer::chat
