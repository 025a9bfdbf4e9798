// The parser's face: runs the coroutine over the pieces, and gathers a whole answer.
#include "chat/answer/answer.h"

#include "chat/answer/bodies.h"

namespace minfer::chat {

using answer::Machine;

struct AnswerParser::Impl {
  Impl(const AnswerFormat& format, AnswerOptions options)
      : machine(format, std::move(options)), task(answer::read_answer(machine)) {
    task.start(machine.loop);
  }

  std::vector<AnswerEvent> run() {
    machine.run(task);
    if (task.done()) task.check();
    return std::exchange(machine.events, {});
  }

  Machine machine;
  answer::Read task;
};

AnswerParser::AnswerParser(const AnswerFormat& format, AnswerOptions options)
    : impl_(std::make_unique<Impl>(format, std::move(options))) {}
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;
AnswerParser& AnswerParser::operator=(AnswerParser&&) noexcept = default;
AnswerParser::~AnswerParser() = default;

std::vector<AnswerEvent> AnswerParser::push(std::string_view text) {
  if (impl_->task.done()) return {};
  impl_->machine.feed(text);
  return impl_->run();
}

std::vector<AnswerEvent> AnswerParser::push_control(std::string_view token) {
  return impl_->machine.format.knows(token) ? push(token) : std::vector<AnswerEvent>();
}

std::vector<AnswerEvent> AnswerParser::finish() {
  impl_->machine.end();
  return impl_->run();
}

AnswerBytes AnswerParser::bytes() const { return impl_->machine.bytes; }

void ParsedAnswer::add(const std::vector<AnswerEvent>& events) {
  using Kind = AnswerEvent::Kind;
  for (const AnswerEvent& e : events) {
    switch (e.kind) {
      case Kind::kReasoning: reasoning += e.text; break;
      case Kind::kContent: content += e.text; break;
      case Kind::kCallBegin: calls.push_back({e.id, e.text, ""}); break;
      case Kind::kCallArguments: calls.back().arguments += e.text; break;
      case Kind::kCallEnd: break;
      case Kind::kCallDropped: calls.pop_back(); break;
    }
  }
}

ParsedAnswer parse_answer(const AnswerFormat& format, std::string_view text, AnswerOptions options) {
  AnswerParser parser(format, std::move(options));
  ParsedAnswer out;
  out.add(parser.push(text));
  out.add(parser.finish());
  return out;
}

}  // namespace minfer::chat
