// DraftModel: a smaller model with the same vocabulary that guesses how texts go on, for many runs at once. Its K and V
// are its own, with a prefix tree of their own; what it holds of a run may be less than the run has, and is made up for
// in parts before it guesses.
// Errors:  none after create(): where memory or a step fails, there are fewer guesses or none.
// Threads: one owner; guesses are drawn on the threads of the pool, one thread per run at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/runner.h"
#include "engine/step_time.h"

namespace minfer {

struct DraftOptions {
  RunnerOptions runner;   // pool and backend: those of the model that is guessed for; kv_memory as below
  int64_t kv_memory = 0;  // bytes of K and V; 0: room for `positions`
  int64_t positions = 0;  // of all sequences and the prefix cache together
  bool share_prefixes = true;
};

// What the draft model keeps of one run.
struct DraftRun {
  int32_t seq = -1;              // of its runner; -1: none
  int32_t base = 0;              // ids that were known when it guessed last
  std::vector<int32_t> guesses;  // what it guessed then, after those
  int32_t rest = 0;              // steps to sit out, because there was no room
  uint64_t asked = 0;            // when it was asked last
  bool off = false;              // something went wrong
};

// What one run asks for.
struct DraftAsk {
  DraftRun* run;
  std::vector<int32_t>* ids;  // those known; while it is asked, its guesses stand behind them
  int32_t depth;              // guesses at most, at least 1. Requires: within room()
  // The next guess from its row of logits [n_vocab]; -1: none from here on.
  std::function<Result<int32_t>(std::span<const float> logits)> draw;
};

class DraftModel {
 public:
  // Errors: kInvalidArgument when its vocabulary is not that of `target`, with the first id that differs; as
  // Runner::create(). A context shorter than options.runner.n_ctx is none: it guesses as far as it goes.
  static Result<std::unique_ptr<DraftModel>> create(std::unique_ptr<Model> model, const Model& target,
                                                    const DraftOptions& options);

  // Fills the guesses of each run. A run that lacks much of its text gets a part of that computed instead, as long as
  // all of it takes about `budget_ms`; deeper guesses are left out beyond that.
  void propose(std::span<DraftAsk> asks, double budget_ms);
  void release(DraftRun& run);  // its sequence; what is cached of it stays
  // Whether to ask for this run at all, in this step. Counts the steps that it sits out.
  bool usable(DraftRun& run) const;
  // Deepest guess after so many known ids.
  int32_t room(int32_t known) const { return runner_->n_ctx() - known + 1; }
  // How many of the known ids it has to read before it guesses, at least 1.
  int32_t missing(const DraftRun& run, std::span<const int32_t> ids) const;

  // 0: nothing known yet.
  double step_ms(int32_t rows) const { return time_.decode_ms(rows); }
  double read_ms(int32_t tokens, int32_t known) const {  // the last `tokens` of the known ids
    return time_.prefill_ms(tokens, int64_t{tokens} * known - int64_t{tokens} * tokens / 2);
  }

  const Runner& runner() const { return *runner_; }
  int64_t failures() const { return failures_; }  // steps and draws that went wrong
  // Between steps, when no run has a sequence. Errors: kInternal, what is wrong.
  Status check_idle(bool clear);

 private:
  DraftModel() = default;
  struct Active {
    DraftAsk* ask;
    int32_t known;
    int32_t depth;       // what there is room for
    bool draws = false;  // its last row is in the batch
  };
  bool begin(DraftAsk& ask);              // its sequence holds rows of known ids only. False: there is none
  bool waits(const DraftAsk& ask) const;  // for pages that another ask of this step computes
  bool reserve(const Active& a, int32_t n);
  bool make_room();
  void fill_first(std::span<DraftAsk> asks, double budget_ms);
  void fill_next();
  bool step(const StepShape& shape);  // computes batch_ and draws from its rows. False: it failed
  void draw_all(std::span<const float> logits);
  Status warm_up();  // makes the plan of one row and learns its time

  std::unique_ptr<Model> model_;
  std::unique_ptr<Runner> runner_;
  bool share_prefixes_ = true;
  StepTime time_;
  uint64_t now_ = 0;  // proposals so far
  int64_t failures_ = 0;
  std::vector<DraftRun*> owners_;  // by sequence
  // Of the step in hand.
  std::vector<Active> active_;
  std::vector<BatchToken> batch_;
  std::vector<Active*> drawing_;
  StepShape first_;
};

// Whether guesses of the one are ids of the other. Errors: kInvalidArgument, the first difference.
Status check_same_vocabulary(const Model& draft, const Model& target);

}  // namespace minfer
