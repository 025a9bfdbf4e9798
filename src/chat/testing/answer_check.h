// For tests and fuzzing: one answer parsed in every way that must not matter, and what must hold of any answer.
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer/answer.h"
#include "chat/json.h"

namespace minfer::chat::testing {

struct Run {
  ParsedAnswer answer;
  AnswerBytes bytes;
  std::string wrong;
};

// `next` gives the size of the next piece.
inline Run run(const AnswerFormat& format, std::string_view text, AnswerOptions options,
               const std::function<size_t()>& next) {
  Run out;
  AnswerParser parser(format, options);
  int begun = 0, open = -1;
  const auto take = [&](const std::vector<AnswerEvent>& events) {
    using Kind = AnswerEvent::Kind;
    for (const AnswerEvent& e : events) {
      const bool of_call = e.kind != Kind::kReasoning && e.kind != Kind::kContent;
      if (e.kind == Kind::kCallBegin) {
        if (open != -1 || e.call != begun++) out.wrong = "a call begins out of order";
        open = e.call;
      } else if (of_call) {
        if (e.call != open) out.wrong = "an event of a call that is not open";
        if (e.kind != Kind::kCallArguments) open = -1;
        if (e.kind == Kind::kCallDropped && !options.stream_arguments) out.wrong = "a complete call was dropped";
      } else if (open != -1) {
        out.wrong = "text inside a call";
      }
      const bool empty_allowed = e.kind == Kind::kCallEnd || e.kind == Kind::kCallDropped;
      if (e.text.empty() != empty_allowed) out.wrong = "an empty delta";
    }
    out.answer.add(events);
  };
  while (!text.empty()) {
    const size_t n = std::min(text.size(), next());
    take(parser.push(text.substr(0, n)));
    text.remove_prefix(n);
  }
  take(parser.finish());
  if (open != -1) out.wrong = "a call was left open";
  out.bytes = parser.bytes();
  return out;
}

inline std::string show(const ParsedAnswer& a) {
  std::string out = "reasoning{" + a.reasoning + "} content{" + a.content + "}";
  for (const ParsedCall& c : a.calls) out += " " + c.id + ":" + c.name + c.arguments;
  return out;
}

// "" when whole, byte by byte and cut at random (`seed`), streamed and complete give the same answer, every byte is
// accounted for and all arguments are JSON objects; otherwise what is wrong. `out` = the answer.
inline std::string check_answer(const AnswerFormat& format, std::string_view text, AnswerOptions options, uint32_t seed,
                                ParsedAnswer& out) {
  const Run whole = run(format, text, options, [&] { return text.size(); });
  out = whole.answer;
  const auto random = [&seed]() -> size_t {
    seed = seed * 1664525u + 1013904223u;
    return 1 + (seed >> 16) % 7;
  };
  AnswerOptions other = options;
  other.stream_arguments = !options.stream_arguments;
  const Run runs[] = {run(format, text, options, [] { return size_t{1}; }), run(format, text, options, random),
                      run(format, text, other, random)};
  if (!whole.wrong.empty()) return whole.wrong;
  for (const Run& r : runs) {
    if (!r.wrong.empty()) return r.wrong;
    if (show(r.answer) != show(whole.answer)) return "cut: " + show(r.answer) + "\nwhole: " + show(whole.answer);
  }
  const AnswerBytes& b = whole.bytes;
  if (b.reasoning + b.content + b.calls + b.markers != text.size()) return "bytes are not accounted for";
  if (b.content != out.content.size() || b.reasoning != out.reasoning.size()) return "text was changed";
  for (const ParsedCall& c : out.calls) {
    const auto v = parse_json(c.arguments);
    if (!v.ok() || !v->is_dict()) return "arguments are no JSON object: " + c.arguments;
    if (c.name.empty()) return "a call without a name";
  }
  // Content and reasoning stand in the text in their order.
  for (const std::string* part : {&out.content, &out.reasoning}) {
    size_t at = 0;
    for (const char c : *part) {
      at = text.find(c, at);
      if (at == text.npos) return "text that was never there";
      ++at;
    }
  }
  return {};
}

}  // namespace minfer::chat::testing
