// What a model's answer says, taken apart as it comes: reasoning, content and tool calls.
// Rule:    what is not a well-formed call is content, byte for byte; nothing is lost. The result does not depend on how
//          the text was cut into pieces, and the cost is linear in its bytes. The arguments of a call that ended are a
//          JSON object. White space that touches a marker ("</think>\n\n", "\n<tool_call>") goes with the marker.
// Errors:  none: every text has a reading. Only an unknown format name is refused, with the known ones.
// Threads: one answer, one parser.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "chat/answer/format.h"
#include "chat/value.h"

namespace minfer::chat {

struct AnswerEvent {
  enum class Kind : uint8_t {
    kReasoning,      // text
    kContent,        // text
    kCallBegin,      // call, text = the function's name, id = the model's own id for it or ""
    kCallArguments,  // call, text = the next piece of the arguments' JSON
    kCallEnd,        // call: complete, the pieces together are a JSON object
    kCallDropped,    // call: it turned out not to be one (stream_arguments only); its text follows as content
  };
  Kind kind = Kind::kContent;
  std::string text = {};
  int call = -1;  // counts the calls begun, dropped ones too
  std::string id = {};
};

struct AnswerOptions {
  bool thinking_open = false;    // the prompt ended inside a block of thinking (Rendered::thinking_open)
  bool parse_reasoning = true;   // false: markers of reasoning are content
  bool parse_calls = true;       // false: tool calls are content
  bool stream_arguments = true;  // false: a call is told of when it is complete, so none is ever dropped
  // The request's tool definitions (a list, or none): their schemas decide whether a bare word is a string, and calls
  // without a marker of their own (Llama 3's JSON, Llama 4's lists) are looked for only with them.
  Value tools = {};
};

// Where the bytes went. Their sum, with what is still held back, is what was pushed.
struct AnswerBytes {
  uint64_t reasoning = 0, content = 0;
  uint64_t calls = 0;    // the text of calls that ended
  uint64_t markers = 0;  // other markers, and white space that touches one
};

class AnswerParser {
 public:
  explicit AnswerParser(const AnswerFormat& format, AnswerOptions options = {});
  AnswerParser(AnswerParser&&) noexcept;
  AnswerParser& operator=(AnswerParser&&) noexcept;
  ~AnswerParser();

  // The next piece of text: whole characters, as the stream decoder gives them.
  std::vector<AnswerEvent> push(std::string_view text);
  // The text of a control token. One the format knows is pushed; another says nothing, as in text without markers.
  std::vector<AnswerEvent> push_control(std::string_view token);
  // The end of the answer: what was held back. A call cut short is content.
  std::vector<AnswerEvent> finish();

  AnswerBytes bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All of an answer.
struct ParsedCall {
  std::string id;  // "" when the model gave none
  std::string name;
  std::string arguments;  // a JSON object
};
struct ParsedAnswer {
  std::string reasoning, content;
  std::vector<ParsedCall> calls;
  // Adds what the events say (in their order); dropped calls are forgotten.
  void add(const std::vector<AnswerEvent>& events);
};
ParsedAnswer parse_answer(const AnswerFormat& format, std::string_view text, AnswerOptions options = {});

}  // namespace minfer::chat
