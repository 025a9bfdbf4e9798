// AnswerReader: the events of one choice, taken apart into reasoning, content and tool calls as they come.
// The engine's text leaves control tokens out; those that mean something to the answer's format are put back in their
// places between the bytes of the text, which may lag behind the ids.
// Threads: one owner; the tokenizer must outlive it.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "chat/answer/answer.h"
#include "minfer/request.h"
#include "tokenizer/stream_decode.h"

namespace minfer::openai {

class AnswerReader {
 public:
  AnswerReader(const Tokenizer& tokenizer, const chat::AnswerFormat& format, chat::AnswerOptions options);

  // The last event of the choice (`finish`) brings everything that was held back.
  std::vector<chat::AnswerEvent> push(const Event& event);

 private:
  struct Mark {
    uint64_t at;  // after so many bytes of text
    std::string token;
  };

  const Tokenizer* tokenizer_;
  chat::AnswerFormat format_;
  chat::AnswerParser parser_;
  StreamDecoder decoder_;
  uint64_t decoded_ = 0, pushed_ = 0;  // bytes of text: by the ids, by the events
  std::deque<Mark> marks_;
};

}  // namespace minfer::openai
