#include "engine/answer.h"

#include <algorithm>

namespace minfer {

Answer::Answer(const Tokenizer* tokenizer, const Request& request, chat::StopMatcher stops)
    : tokenizer_(tokenizer), request_(request), stops_(std::move(stops)) {
  if (tokenizer != nullptr) decoder_.emplace(*tokenizer, DecodeOptions{request.show_control, false});
}

bool Answer::ends(int32_t id) const {
  if (std::find(request_.stop_ids.begin(), request_.stop_ids.end(), id) != request_.stop_ids.end()) return true;
  return !request_.ignore_eos && tokenizer_ != nullptr && tokenizer_->valid(id) && tokenizer_->is_eog(id);
}

void Answer::add_text(std::string text) {
  if (text.empty()) return;
  choice_.text += must_go_on() ? stops_.pass(text) : stops_.push(text);
}

Status Answer::accept(int32_t id, TokenLogprobs* logprobs) {
  MINFER_DCHECK(!finish());
  if (!must_go_on() && ends(id)) {
    end(FinishReason::kStop);
    return {};
  }
  // Rows of the table beyond the vocabulary are padding and have no text.
  if (decoder_ && tokenizer_->valid(id)) add_text(MINFER_TRY(decoder_->push(id)));
  choice_.ids.push_back(id);
  if (logprobs != nullptr) choice_.logprobs.push_back(std::move(*logprobs));
  if (stops_.stopped()) {
    choice_.stop = stops_.stop();
    end(FinishReason::kStop);
  } else if (request_.max_tokens >= 0 && size() >= request_.max_tokens) {
    end(FinishReason::kLength);
  }
  return {};
}

void Answer::end(FinishReason reason) {
  MINFER_DCHECK(!finish());
  if (!stops_.stopped()) {
    if (decoder_) add_text(decoder_->finish());
    if (stops_.stopped()) {  // the leftovers completed a stop
      choice_.stop = stops_.stop();
      reason = FinishReason::kStop;
    } else {
      choice_.text += stops_.finish();
    }
  }
  choice_.finish = reason;
  finish_ = reason;
}

Event Answer::take_event() {
  Event e;
  const Choice& c = choice_;
  e.ids.assign(c.ids.begin() + static_cast<std::ptrdiff_t>(ids_taken_), c.ids.end());
  if (!c.logprobs.empty())
    e.logprobs.assign(c.logprobs.begin() + static_cast<std::ptrdiff_t>(ids_taken_), c.logprobs.end());
  e.text = c.text.substr(text_taken_);
  ids_taken_ = c.ids.size();
  text_taken_ = c.text.size();
  if (!end_taken_ && finish()) {
    end_taken_ = true;
    e.finish = finish();
  }
  return e;
}

}  // namespace minfer
