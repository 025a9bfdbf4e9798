// How the engine unwinds when a template fails: thrown and caught inside src/chat only (chat_template.cpp turns it into
// an Error).
#pragma once

#include <string>

#include "base/error.h"
#include "chat/jinja/lexer.h"

namespace minfer::chat::jinja {

struct Raised {
  ErrorCode code;
  std::string message;
  Pos pos;                // line 0: where the interpreter stands
  bool verbatim = false;  // raise_exception: the message alone is the answer
};

template <typename... Args>
[[noreturn]] void raise_at(Pos pos, ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Raised{code, fmt::format(format, std::forward<Args>(args)...), pos};
}

// What Python would raise as TypeError, ValueError, UndefinedError, ...
template <typename... Args>
[[noreturn]] void raise_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Raised{ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...), Pos{}};
}

}  // namespace minfer::chat::jinja
