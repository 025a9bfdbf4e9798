// EngineImpl: the engine's thread and everything it owns. One turn of its loop: what came in, a step that the scheduler
// chose, the runner's step, the draws, the events.
// Threads: submit(), ask_idle() and stats() from any; all else on the engine's thread.
#pragma once

#include <array>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/draft_model.h"
#include "engine/request_state.h"
#include "engine/runner.h"
#include "engine/scheduler.h"
#include "kv/page_store.h"
#include "minfer/engine.h"

namespace minfer {

struct EngineImpl final : private SchedulerHost {
  // `draft`: null without one.
  EngineImpl(std::unique_ptr<Model> model, std::unique_ptr<Runner> runner, std::unique_ptr<DraftModel> draft,
             std::optional<PageStore> store, const EngineOptions& options);
  ~EngineImpl() override;

  Result<std::shared_ptr<RequestState>> submit(Request request);
  Result<std::shared_ptr<RequestState>> submit(EmbedRequest request);
  std::future<Status> ask_idle(bool clear);
  // Runs `task` on the engine's thread, between two steps, and waits for it. False: the engine is closing.
  bool between_steps(const std::function<void(Runner&)>& task);
  EngineStats stats() const;
  bool on_its_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

  // What names the K and V of this model on this engine; the model's file is read once for it, unless its hash was
  // given. Errors: a model that is in no file; the file.
  Result<std::string> identity();

  const Model& model() const { return *model_; }
  const Runner& runner() const { return *runner_; }

 private:
  using StatePtr = std::shared_ptr<RequestState>;
  struct Task {
    const std::function<void(Runner&)>* run;
    std::promise<bool> done;
  };
  struct IdleQuestion {
    bool clear;
    std::promise<Status> answer;
  };

  // --- engine.cpp: the loop ---
  void loop() noexcept;
  bool take_inbox();  // false: closed
  void take_cancels();
  void update_pauses();
  void answer_idle();
  double wait_ms() const;  // until the next deadline
  double now_ms() const;
  void publish_stats();

  // --- engine_guess.cpp: before the scheduler decides ---
  // Of the step as far as it was chosen.
  struct GuessCosts {
    int32_t rows = 0;     // of streams and their guesses
    double tokens = 0;    // that it will give
    double draft_ms = 0;  // that the draft model will take
    int32_t sharers = 0;  // runs whose guesses it computes together
  };
  void guess_ahead();  // for every stream
  void choose_guesses(Run& run, GuessCosts& costs);
  GuessDepth::Choice draft_choice(Run& run, const GuessCosts& costs, int32_t room, int32_t& most) const;
  void learn_of_guesses(Run& run, int32_t draft);

  // --- engine_step.cpp: one step ---
  void run_step(const SchedStep& step);
  void build_batch(const SchedStep& step, bool embeds);
  Status compute(const SchedStep& step);
  void report_step(const SchedStep& step, double ms) const;
  void read_prompt_logprobs(Run& run, const SchedItem& item, const float* rows);
  void draw_all(const SchedStep& step, std::span<const float> logits);
  void draw(Run& run, int32_t draft, const float* rows);
  Result<int32_t> draw_one(Run& run, std::span<const float> logits, bool guess);
  Result<TokenMask> mask_of(Run& run, bool guess);
  void pool_rows(const SchedStep& step, const float* rows);
  void accept(Run& run, const SchedItem& item);
  void emit(Run& run);

  // --- engine_runs.cpp: the life of a request ---
  Result<StatePtr> make_state(Request request);
  Result<StatePtr> make_state(EmbedRequest request);
  Result<StatePtr> enqueue(Result<StatePtr> made);
  Status check_ids(const char* field, std::span<const int32_t> ids) const;
  bool may_share(const Run& run) const;
  void restore(Run& run);  // engine_store.cpp: pages from disk behind those the tree has
  void keep(RadixTree::Node node);
  void keep_all();
  Status check(const Request& request) const;
  void start(const StatePtr& state);
  void close_sequence(Run& run);
  void keep_and_close(Run& run);               // with its rows after the last whole page left to the cache
  void finish(Run& run, FinishReason reason);  // ends the answer if it has not ended
  void fail(RequestState& state, Error error);
  void rank(RequestState& state);
  void retire(Run& run);  // gives everything of an ended run back; completes its request with the last
  bool admit(SchedRun& run) override;
  void catch_up(SchedRun& run) override;
  bool reserve(SchedRun& run, int32_t n) override;
  void release(SchedRun& run) override;
  int32_t pages_available() const override { return runner_->tables().pages_available(); }
  int32_t pages_held(const SchedRun& run) const override {
    return static_cast<int32_t>(runner_->tables().pages(static_cast<const Run&>(run).seq).size());
  }
  int32_t pages_for(int32_t n) const override { return runner_->tables().pages_for(n); }

  const std::unique_ptr<Model> model_;
  const std::unique_ptr<Runner> runner_;
  const std::unique_ptr<DraftModel> draft_;  // null: none
  std::optional<PageStore> store_;
  const EngineOptions options_;
  const std::shared_ptr<Doorbell> doorbell_ = std::make_shared<Doorbell>();
  const int64_t start_ns_;

  // --- the engine's thread ---
  Scheduler scheduler_;
  std::unordered_map<RequestState*, StatePtr> live_;
  std::vector<StatePtr> ended_;  // in this turn of the loop: a step may still look at their runs
  std::vector<IdleQuestion> idle_questions_;
  uint64_t arrivals_ = 0;
  std::vector<DraftAsk> asks_;  // of the draft model, in this turn of the loop; by asking_
  std::vector<Run*> asking_;
  double guess_ms_ = 0;  // that it took
  std::vector<BatchToken> batch_;
  double forward_ms_ = 0;          // of the step in hand: the model alone
  std::vector<std::byte> page_;    // on its way to the store
  std::vector<size_t> first_row_;  // per item of the step: its first row of logits
  EngineStats counts_;             // the counters; the rest is filled in by publish_stats()
  static constexpr size_t kStalls = 4096;
  std::vector<float> stalls_;  // the last so many times between tokens, in a ring
  size_t stall_at_ = 0;
  float stall_max_ = 0;

  // --- shared ---
  mutable std::mutex mutex_;
  std::vector<StatePtr> inbox_;  // guarded by mutex_, like all below
  std::vector<IdleQuestion> idle_inbox_;
  std::vector<Task> tasks_;
  bool closing_ = false;
  int32_t n_unfinished_ = 0;
  int64_t n_refused_ = 0;
  EngineStats published_;
  std::vector<float> published_stalls_;

  std::mutex identity_mutex_;
  std::string identity_;  // guarded by identity_mutex_; empty: not known yet

  std::thread thread_;
};

}  // namespace minfer
