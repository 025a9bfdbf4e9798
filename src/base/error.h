// Internal helpers over minfer/error.h: propagation macros, formatted errors and checks.
#pragma once

#include <fmt/core.h>

#include "minfer/error.h"

namespace minfer {

// make_error(ErrorCode::kCorrupt, "[gguf] key '{}': found {}, expected {}", key, got, want)
template <typename... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

[[noreturn]] void check_failed(const char* file, int line, const char* expr);

}  // namespace minfer

// Yields the value of a Result (nothing for a Status) or returns its error from the enclosing function.
#define MINFER_TRY(expr)                     \
  ({                                         \
    auto&& minfer_try_ = (expr);             \
    if (!minfer_try_.ok()) [[unlikely]]      \
      return std::move(minfer_try_).error(); \
    std::move(minfer_try_).value();          \
  })

// The same, with "<what>: " put before the error's message.
#define MINFER_TRY_CTX(expr, what)                              \
  ({                                                            \
    auto&& minfer_try_ = (expr);                                \
    if (!minfer_try_.ok()) [[unlikely]]                         \
      return std::move(minfer_try_).error().with_context(what); \
    std::move(minfer_try_).value();                             \
  })

// A failed CHECK is a bug in minfer; nothing a file, prompt or request contains may reach one.
#define MINFER_CHECK(cond) ((cond) ? static_cast<void>(0) : ::minfer::check_failed(__FILE__, __LINE__, #cond))

#ifdef NDEBUG
#define MINFER_DCHECK(cond) static_cast<void>(sizeof(cond))
#else
#define MINFER_DCHECK(cond) MINFER_CHECK(cond)
#endif
