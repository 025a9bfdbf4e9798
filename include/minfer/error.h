// Error, Status and Result<T>: how every boundary of minfer reports failure.
// An error is a value: it says what was being done, where, what was found and what was expected.
// Errors:  constructing them never fails; reading the value of a failed Result aborts (our bug).
// Threads: plain values, no shared state.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

namespace minfer {

enum class ErrorCode {
  kInvalidArgument,    // the caller asked for something that makes no sense
  kNotFound,           // a file, tensor, key or name is missing
  kIo,                 // the operating system refused
  kCorrupt,            // a file or message breaks its own format
  kUnsupported,        // well-formed, but minfer cannot do it
  kOutOfRange,         // a position, slot or id outside its limit
  kResourceExhausted,  // memory, KV slots, time
  kCancelled,          // the caller stopped it
  kInternal,           // a bug in minfer
};

// "corrupt", "not_found", ...: stable names for JSON and logs.
const char* error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // "[gguf] tensor 'x': offset 12 exceeds file (8 bytes)"

  // Puts "<what>: " before the message; use it where a caller knows more than the callee.
  Error with_context(const std::string& what) && {
    message = what + ": " + message;
    return std::move(*this);
  }
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : failed_(true), error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !failed_; }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }
  void value() const {}

 private:
  bool failed_ = false;
  Error error_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return v_.index() == 0; }
  T& value() & { return check(), std::get<0>(v_); }
  const T& value() const& { return check(), std::get<0>(v_); }
  T&& value() && { return check(), std::move(std::get<0>(v_)); }
  const Error& error() const& { return std::get<1>(v_); }
  Error&& error() && { return std::move(std::get<1>(v_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

 private:
  void check() const {
    if (!ok()) std::abort();
  }
  std::variant<T, Error> v_;
};

}  // namespace minfer
