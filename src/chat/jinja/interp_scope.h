// Scoped helpers of the interpreter, for its own .cpp files.
#pragma once

#include "chat/jinja/interp.h"

namespace minfer::chat::jinja {

// Sets a variable for as long as it lives.
template <typename T>
class Restore {
 public:
  Restore(T& slot, T value) : slot_(slot), saved_(slot) { slot_ = value; }
  ~Restore() { slot_ = saved_; }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& slot_;
  T saved_;
};

template <typename F>
auto Interp::with_scope(Scope* parent, F&& f) {
  struct Close {
    Interp& in;
    Scope* scope;
    ~Close() { in.close_scope(scope); }
  };
  Scope* scope = open_scope(parent);
  const Close close{*this, scope};
  const Restore<Scope*> here(scope_, scope);
  return f();
}

template <typename F>
Text Interp::captured(F&& f) {
  Text text;
  const Restore<Text*> here(out_, &text);
  f();
  return text;
}

}  // namespace minfer::chat::jinja
