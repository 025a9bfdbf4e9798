// Coroutines for parsers: straight-line code that waits for the next byte wherever it needs one.
// Layout:  a Loop knows which coroutine of a chain runs; a task that waits for another hands the loop over and is
//          resumed from the loop again, so the stack does not grow with the number of tasks.
// Threads: one loop, one thread.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace minfer::chat::answer {

struct Loop {
  std::coroutine_handle<> current;
};

template <typename T>
class Task {
 public:
  struct promise_type {
    Loop* loop = nullptr;
    std::coroutine_handle<> caller;
    std::optional<T> value;
    std::exception_ptr failure;

    struct Back {
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> h) const noexcept {
        h.promise().loop->current = h.promise().caller;
      }
      void await_resume() const noexcept {}
    };

    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    Back final_suspend() const noexcept { return {}; }
    void return_value(T v) { value = std::move(v); }
    void unhandled_exception() { failure = std::current_exception(); }
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // As the first task of a loop.
  void start(Loop& loop) {
    handle_.promise().loop = &loop;
    loop.current = handle_;
  }
  bool done() const { return handle_.done(); }
  // What it threw (out of memory) is thrown on.
  void check() const {
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
  }

  // co_await task
  bool await_ready() const noexcept { return false; }
  template <typename P>
  void await_suspend(std::coroutine_handle<P> caller) noexcept {
    promise_type& p = handle_.promise();
    p.loop = caller.promise().loop;
    p.caller = caller;
    p.loop->current = handle_;
  }
  T await_resume() {
    check();
    return std::move(*handle_.promise().value);
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> h) : handle_(h) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace minfer::chat::answer
