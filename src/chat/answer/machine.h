// What the coroutines of an answer share: the input, the text on its way out, and the call that is being read.
// Rule:    every byte taken is put somewhere exactly once: into text, into a marker, or into raw_, the text of the
//          section being read, which becomes part of a call when one is complete and content when not.
// Threads: one answer, one machine.
#pragma once

#include <coroutine>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer/answer.h"
#include "chat/answer/task.h"
#include "chat/answer/tools.h"

namespace minfer::chat::answer {

inline constexpr int kEnd = -1;  // the text is over

class Machine {
 public:
  Machine(const AnswerFormat& format_in, AnswerOptions options_in);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const AnswerFormat format;
  const AnswerOptions options;
  const Tools tools;
  Loop loop;

  // -- input
  void feed(std::string_view text);
  void end() { ended_ = true; }
  bool has_input() const { return at_ < input_.size() || ended_; }
  // Runs the coroutines of `task` until they wait for more input.
  void run(const Task<bool>& task) {
    while (!task.done() && (!waiting_ || has_input())) {
      waiting_ = false;
      loop.current.resume();
    }
  }
  struct Peek {
    Machine& m;
    bool await_ready() const { return m.has_input(); }
    void await_suspend(std::coroutine_handle<>) const { m.waiting_ = true; }
    int await_resume() const { return m.at_ < m.input_.size() ? static_cast<uint8_t>(m.input_[m.at_]) : kEnd; }
  };
  // co_await: the next byte, or kEnd; it is not taken.
  Peek peek() { return {*this}; }
  // Takes it, outside a section or inside one. Requires: the last peek gave a byte.
  char take() { return input_[at_++]; }
  void take_raw() { raw_ += input_[at_++]; }

  // -- text
  void set_reasoning(bool on) { reasoning_ = on; }
  bool reasoning() const { return reasoning_; }
  void text(std::string_view bytes);
  // A marker: the white space before it and after it goes with it.
  void marker(size_t bytes);
  // Only white space since the last marker (since the beginning, for `first`).
  bool fresh() const { return fresh_; }
  bool first() const { return first_; }
  void flush_text();  // the white space held back, at the end

  // -- a section: from a marker on, until it ends or goes wrong
  void begin_section(std::string_view marker);
  void end_section();               // what no call has taken is content
  void silent() { commit(false); }  // what was taken so far was markup
  const std::string& raw() const { return raw_; }

  // -- the call of the section
  void call_begin(std::string name, std::string id);
  void call_arguments(std::string_view json);
  // Checks the arguments; false: they are no JSON object, the call is dropped.
  bool call_end();

  std::vector<AnswerEvent> events;
  AnswerBytes bytes;

 private:
  void emit(AnswerEvent::Kind kind, std::string_view text, int call = -1, std::string_view id = {});
  void commit(bool to_call);

  std::string input_;
  size_t at_ = 0;
  bool ended_ = false, waiting_ = false;

  bool reasoning_ = false, strip_ = false, fresh_ = true, first_ = true;
  std::string space_;  // white space that may turn out to touch a marker
  std::string raw_;

  bool in_call_ = false;
  int calls_begun_ = 0;
  std::string name_, id_, arguments_;
};

inline bool is_space(int c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace minfer::chat::answer
