// Answer: the ids of one choice as they are drawn, turned into text and held against everything that may end it.
// Errors:  what the decoder says of an id.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chat/stop_matcher.h"
#include "minfer/request.h"
#include "tokenizer/stream_decode.h"

namespace minfer {

class Answer {
 public:
  // `tokenizer` null: no text. `request` outlives the answer. Requires: stops without a tokenizer were refused.
  Answer(const Tokenizer* tokenizer, const Request& request, chat::StopMatcher stops);

  // The next id. Ends the answer (finish()) when it is an end token or completes a stop string, or when it is the last
  // that max_tokens allows. An end token is not part of the answer.
  Status accept(int32_t id, TokenLogprobs* logprobs);  // logprobs: null = none; moved from
  // Ends it for another reason. Requires: not ended.
  void end(FinishReason reason);

  const std::optional<FinishReason>& finish() const { return finish_; }
  int32_t size() const { return static_cast<int32_t>(choice_.ids.size()); }
  std::span<const int32_t> ids() const { return choice_.ids; }
  // Whether ids that would end the answer may not be drawn next: fewer than min_tokens are there.
  bool must_go_on() const { return size() < request_.min_tokens; }
  bool ends(int32_t id) const;  // an end token or a stop id

  // What was added since the last call; empty when nothing was.
  Event take_event();
  // The whole. Requires: ended.
  Choice take_choice() { return std::move(choice_); }

 private:
  void add_text(std::string text);

  const Tokenizer* tokenizer_;
  const Request& request_;
  chat::StopMatcher stops_;
  std::optional<StreamDecoder> decoder_;
  Choice choice_;
  std::optional<FinishReason> finish_;
  size_t ids_taken_ = 0, text_taken_ = 0;
  bool end_taken_ = false;
};

}  // namespace minfer
