// Positions come from decoding the ids again, bytes from the events.
#include "server/openai/answer_reader.h"

#include <algorithm>

namespace minfer::openai {
namespace {

void append(std::vector<chat::AnswerEvent>& all, std::vector<chat::AnswerEvent> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

}  // namespace

AnswerReader::AnswerReader(const Tokenizer& tokenizer, const chat::AnswerFormat& format, chat::AnswerOptions options)
    : tokenizer_(&tokenizer), format_(format), parser_(format, std::move(options)), decoder_(tokenizer) {}

std::vector<chat::AnswerEvent> AnswerReader::push(const Event& event) {
  for (const int32_t id : event.ids) {
    if (!tokenizer_->valid(id)) continue;  // as the engine: padding of the table has no text
    if (tokenizer_->is_control(id)) {
      const std::string_view token = tokenizer_->text(id);
      if (format_.knows(token)) marks_.push_back({decoded_, std::string(token)});
    }
    const auto text = decoder_.push(id);
    if (text.ok()) decoded_ += text->size();
  }
  std::vector<chat::AnswerEvent> out;
  std::string_view text = event.text;
  for (;;) {
    const uint64_t until = marks_.empty() ? pushed_ + text.size() : std::max(pushed_, marks_.front().at);
    const auto n = static_cast<size_t>(std::min<uint64_t>(until - pushed_, text.size()));
    if (n > 0) append(out, parser_.push(text.substr(0, n)));
    pushed_ += n;
    text.remove_prefix(n);
    if (marks_.empty() || marks_.front().at > pushed_) break;
    append(out, parser_.push_control(marks_.front().token));
    marks_.pop_front();
  }
  if (event.finish) append(out, parser_.finish());
  return out;
}

}  // namespace minfer::openai
