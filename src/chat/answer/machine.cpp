// Output of the parser: text with its white space, calls with their arguments.
#include "chat/answer/machine.h"

#include "chat/json.h"

namespace minfer::chat::answer {

Machine::Machine(const AnswerFormat& format_in, AnswerOptions options_in)
    : format(format_in), options(std::move(options_in)), tools(options.tools) {}

void Machine::feed(std::string_view text) {
  input_.erase(0, at_);
  at_ = 0;
  input_ += text;
}

void Machine::emit(AnswerEvent::Kind kind, std::string_view text, int call, std::string_view id) {
  const bool joins = kind == AnswerEvent::Kind::kReasoning || kind == AnswerEvent::Kind::kContent ||
                     kind == AnswerEvent::Kind::kCallArguments;
  if (joins && !events.empty() && events.back().kind == kind && events.back().call == call) {
    events.back().text += text;
  } else {
    events.push_back({kind, std::string(text), call, std::string(id)});
  }
}

void Machine::text(std::string_view bytes_in) {
  for (size_t at = 0; at < bytes_in.size();) {
    const bool space = is_space(bytes_in[at]);
    size_t end = at + 1;
    while (end < bytes_in.size() && is_space(bytes_in[end]) == space) ++end;
    const std::string_view run = bytes_in.substr(at, end - at);
    at = end;
    if (space && strip_) {
      bytes.markers += run.size();
    } else if (space) {
      space_ += run;
    } else {
      flush_text();
      emit(reasoning_ ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kContent, run);
      (reasoning_ ? bytes.reasoning : bytes.content) += run.size();
      strip_ = fresh_ = first_ = false;
    }
  }
}

void Machine::flush_text() {
  if (space_.empty()) return;
  emit(reasoning_ ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kContent, space_);
  (reasoning_ ? bytes.reasoning : bytes.content) += space_.size();
  space_.clear();
}

void Machine::marker(size_t n) {
  bytes.markers += n + space_.size();
  space_.clear();
  strip_ = fresh_ = true;
  first_ = false;
}

void Machine::begin_section(std::string_view marker) {
  raw_ = std::move(space_);
  raw_ += marker;
  space_.clear();
}

void Machine::commit(bool to_call) {
  (to_call ? bytes.calls : bytes.markers) += raw_.size();
  raw_.clear();
  strip_ = fresh_ = true;
  first_ = false;
}

void Machine::end_section() {
  if (in_call_) {
    in_call_ = false;
    if (options.stream_arguments) emit(AnswerEvent::Kind::kCallDropped, {}, calls_begun_ - 1);
  }
  const std::string left = std::move(raw_);
  raw_.clear();
  text(left);
}

void Machine::call_begin(std::string name, std::string id) {
  in_call_ = true;
  name_ = std::move(name);
  id_ = std::move(id);
  arguments_.clear();
  if (options.stream_arguments) emit(AnswerEvent::Kind::kCallBegin, name_, calls_begun_++, id_);
}

void Machine::call_arguments(std::string_view json) {
  if (json.empty()) return;
  arguments_ += json;
  if (options.stream_arguments) emit(AnswerEvent::Kind::kCallArguments, json, calls_begun_ - 1);
}

bool Machine::call_end() {
  const auto parsed = parse_json(arguments_);
  if (!parsed.ok() || !parsed->is_dict()) return false;
  if (!options.stream_arguments) {
    emit(AnswerEvent::Kind::kCallBegin, name_, calls_begun_++, id_);
    emit(AnswerEvent::Kind::kCallArguments, arguments_, calls_begun_ - 1);
  }
  emit(AnswerEvent::Kind::kCallEnd, {}, calls_begun_ - 1);
  in_call_ = false;
  commit(true);
  return true;
}

}  // namespace minfer::chat::answer
