// The queue between the engine and a stream.
#include "engine/request_state.h"

#include <chrono>
#include <utility>

namespace minfer {

Error waits_for_itself() {
  return make_error(ErrorCode::kInvalidArgument,
                    "[engine] a function called by the engine's thread waits for the engine");
}

void Doorbell::ring() {
  {
    const std::lock_guard lock(mutex_);
    rung_ = true;
  }
  rung_cv_.notify_one();
}

void Doorbell::wait(double ms) {
  std::unique_lock lock(mutex_);
  const auto rung = [&] { return rung_; };
  if (ms < 0) {
    rung_cv_.wait(lock, rung);
  } else {
    rung_cv_.wait_for(lock, std::chrono::duration<double, std::milli>(ms), rung);
  }
  rung_ = false;
}

bool RequestState::deliver(Event event) {
  if (request.on_event) return request.on_event(event);
  {
    const std::lock_guard lock(mutex_);
    tokens_held_.fetch_add(static_cast<int32_t>(event.ids.size()), std::memory_order_relaxed);
    events_.push_back(std::move(event));
  }
  ready_.notify_one();
  return true;
}

void RequestState::complete(std::optional<Error> error) {
  {
    const std::lock_guard lock(mutex_);
    complete_ = true;
    error_ = std::move(error);
  }
  ready_.notify_all();
  if (on_done) on_done();
}

Result<std::optional<Event>> RequestState::take(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait && events_.empty() && !complete_ && std::this_thread::get_id() == engine_thread) return waits_for_itself();
  if (wait) ready_.wait(lock, [&] { return complete_ || !events_.empty(); });
  if (events_.empty()) {
    if (complete_ && error_) return Error(*error_);
    return std::optional<Event>();
  }
  std::optional<Event> event = std::move(events_.front());
  events_.pop_front();
  const auto n = static_cast<int32_t>(event->ids.size());
  const int32_t before = tokens_held_.fetch_sub(n, std::memory_order_relaxed);
  lock.unlock();
  if (before >= tokens_most && before - n < tokens_most) doorbell->ring();  // its runs may go on
  return event;
}

bool RequestState::all_taken() const {
  const std::lock_guard lock(mutex_);
  return complete_ && events_.empty();
}

Status RequestState::begin_taking() {
  const std::lock_guard lock(mutex_);
  MINFER_CHECK(complete_);
  if (error_) return Error(*error_);
  if (std::exchange(taken_, true))
    return make_error(ErrorCode::kInvalidArgument, "[engine] the result was taken before");
  return {};
}

Result<Response> RequestState::take_response() {
  MINFER_TRY(begin_taking());
  return std::move(response);
}

Result<Embeddings> RequestState::take_embeddings() {
  MINFER_TRY(begin_taking());
  return std::move(embeddings);
}

}  // namespace minfer
