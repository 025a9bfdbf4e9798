// Macros and loops: the callables that run a body of the template.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "chat/jinja/interp.h"

namespace minfer::chat::jinja {

// {% macro %}, and the caller() of a {% call %} block.
class Macro : public CallableObject {
 public:
  Macro(const MacroDef& def, Scope* scope) : def_(def), scope_(scope) {}
  Value call(Interp& in, const Args& args) override;
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  std::string repr(Interp&) override;
  const char* type_name() const override { return "Macro"; }

 private:
  const MacroDef& def_;
  Scope* scope_;  // where it was defined; kept by the interpreter
};

// The `loop` of a for statement: feeds the items, knows its place, calls its own body again when recursive.
class Loop : public CallableObject, public std::enable_shared_from_this<Loop> {
 public:
  Loop(Interp& in, const ForStmt& stmt, const Value& iterable, int nesting, Scope* scope);
  bool advance(Interp& in);  // on to the next item; false at the end
  const Value& current() const { return current_; }

  Value call(Interp& in, const Args& args) override;  // loop(children)
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  std::string repr(Interp&) override;
  const char* type_name() const override { return "LoopContext"; }
  void release() override;

  // Called by the bound methods loop.cycle and loop.changed.
  Value cycle(const Args& args) const;
  Value changed(Interp& in, const Args& args);

 private:
  friend class Interp;
  bool pull(Interp& in, Value* item);  // the next item the filter lets through, past those looked at already
  bool look_ahead(Interp& in);         // makes sure ahead_ is not empty, if there is a next item
  int64_t count(Interp& in);           // of all items; reads them all

  const ForStmt& stmt_;
  Scope* scope_;  // around the loop: where its filter is evaluated
  const int nesting_;
  Value source_;            // keeps items_ alive
  std::vector<Value> own_;  // items made here: dict keys, characters
  const std::vector<Value>* items_ = nullptr;
  size_t own_next_ = 0;
  size_t* next_ = &own_next_;  // an iterator's own position, so that break leaves the rest to others
  std::deque<Value> ahead_;
  int64_t index0_ = -1;
  Value before_, current_;
  std::vector<Value> last_changed_;
  bool changed_called_ = false;
};

}  // namespace minfer::chat::jinja
