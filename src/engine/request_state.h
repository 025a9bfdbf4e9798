// RequestState: one submitted request, shared by the engine and its stream: the runs of its choices and the events that
// wait to be taken.
// Threads: `runs`, `response` and what is marked so belong to the engine's thread; the queue has its own lock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/answer.h"
#include "engine/draft_model.h"
#include "engine/guess_depth.h"
#include "engine/pooling.h"
#include "engine/prompt_lookup.h"
#include "engine/scheduler.h"
#include "minfer/request.h"
#include "sample/sampler.h"

namespace minfer {

// What a caller's function gets that waits for the engine on the engine's own thread.
Error waits_for_itself();

// Wakes the engine's thread. It outlives the engine, so that streams may too.
class Doorbell {
 public:
  void ring();
  // Until somebody rings, or `ms` have passed (negative: forever). A ring before the call counts.
  void wait(double ms);

 private:
  std::mutex mutex_;
  std::condition_variable rung_cv_;
  bool rung_ = false;
};

struct RequestState;

// One choice of a request: a sequence of ids and everything that draws them.
struct Run : SchedRun {
  Run(RequestState& owner, int32_t choice, Answer answer, Sampler sampler)
      : owner(owner), choice(choice), answer(std::move(answer)), sampler(std::move(sampler)) {}

  RequestState& owner;
  const int32_t choice;
  int32_t seq = -1;              // of the runner; -1: none
  std::vector<int32_t> ids;      // prompt and answer
  std::optional<Pooled> pooled;  // an embedding is made of it, and nothing is drawn
  size_t n_prompt = 0;
  Answer answer;
  Sampler sampler;
  // --- guesses of the step in hand, and what is known of their sources ---
  std::vector<int32_t> guess;      // what is computed beyond the known ids, the first `draft` of them
  bool by_model = false;           // the draft model's; else the text's own
  std::vector<int32_t> looked_up;  // what the text itself proposes
  PromptLookup lookup;
  GuessDepth lookup_depth, draft_depth;
  DraftRun drafted;
  SamplerState before_guesses;
  std::vector<int32_t> drawn;  // ids that the step drew, in order
  std::vector<TokenLogprobs> drawn_logprobs;
  std::vector<uint32_t> allowed;  // the mask of a draw, kept for its memory
  Status failed;                  // of the draw
  // Where answers are ranked: log-probabilities of what the step drew, and those of the answer summed.
  std::vector<float> drawn_scores;
  double score_sum = 0;
  int32_t n_scored = 0;
  double last_token_ms = -1;  // when its last token came; -1: none, or it was paused
};

struct RequestState {
  explicit RequestState(Request r) : request(std::move(r)) {}

  const Request request;  // `prompt` holds the ids, `text` is empty
  std::atomic<bool> cancelled{false};

  // --- the engine's ---
  std::vector<std::unique_ptr<Run>> runs;
  std::vector<int32_t> end_ids;  // what min_tokens keeps from being drawn
  int32_t n_live = 0;            // runs that go on
  Response response;
  Embeddings embeddings;
  std::function<void()> on_done;  // of embeddings; may be empty
  // best_of draws more answers than come back: their events come when all have ended.
  bool ranks() const { return request.best_of > request.n; }
  double submitted_ms = 0;
  bool started = false;  // a step computed something for it

  // --- the queue ---
  // Hands an event over: to the queue, or to request.on_event. False: the receiver wants no more.
  bool deliver(Event event);
  void complete(std::optional<Error> error);
  int32_t tokens_held() const { return tokens_held_.load(std::memory_order_relaxed); }
  // nullopt: complete, or none yet and `wait` is false.
  Result<std::optional<Event>> take(bool wait);
  bool all_taken() const;
  // Requires: complete. Once. Errors: what made the request fail; that it was taken before.
  Result<Response> take_response();
  Result<Embeddings> take_embeddings();

  std::shared_ptr<Doorbell> doorbell;
  std::thread::id engine_thread;  // which would wait for itself
  int32_t tokens_most = 0;        // when so many tokens are held the run pauses

 private:
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Event> events_;
  std::atomic<int32_t> tokens_held_{0};
  Status begin_taking();
  bool complete_ = false, taken_ = false;
  std::optional<Error> error_;
};

}  // namespace minfer
