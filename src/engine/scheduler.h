// Scheduler: which runs compute what in the next step. Every step holds the next token of all streams and, within a
// budget of time, parts of prompts. It knows counts of positions and pages, never tokens or models.
//   Order:      larger priority, then the client that was served least, then arrival.
//   Memory:     a run is admitted when its prompt fits beside what the running ones still need. When a stream finds no
//               page, the lowest priority, latest arrival goes back to waiting and is computed again later.
//   Progress:   the first run in order can always push all others out, and no run is let in that could not run alone.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/step_time.h"

namespace minfer {

struct SchedClient {
  double service = 0;  // tokens computed for it
  int32_t runs = 0;
};

// One sequence, as the scheduler sees it. The owner keeps `known` and `stored` true between steps.
struct SchedRun {
  uint64_t arrival = 0;  // unique; smaller is earlier
  int32_t priority = 0;
  uint64_t client = 0;
  int32_t known = 0;             // ids there are: prompt and answer; at least 1
  int32_t stored = 0;            // of them, how many have K and V
  int32_t draft = 0;             // guesses to compute beyond the known ids
  int32_t max_part = INT32_MAX;  // prompt tokens per step at most
  double deadline_ms = 0;        // 0: none
  bool paused = false;           // computes nothing for now; keeps its pages only as long as nobody needs them

  // The scheduler's own.
  bool running = false;
  bool pushed_out = false;  // in this step
  int32_t charged = 0;      // ids the client was charged for
  SchedClient* account = nullptr;
  bool is_stream() const { return known - stored == 1; }  // one token away from its next draw
};

// Memory, as the scheduler sees it.
class SchedulerHost {
 public:
  virtual ~SchedulerHost() = default;
  // Opens a sequence for the run with what the cache has of its ids, and sets `stored`. False: not now, because another
  // run of this step computes a prefix that it could share.
  virtual bool admit(SchedRun& run) = 0;
  // As above for a run that is under way in its prompt: takes what the cache has got meanwhile.
  virtual void catch_up(SchedRun& run) = 0;
  // Room for positions up to n. False: no pages; nothing has changed then.
  virtual bool reserve(SchedRun& run, int32_t n) = 0;
  // Gives the sequence back; `stored` becomes 0.
  virtual void release(SchedRun& run) = 0;
  virtual int32_t pages_available() const = 0;
  virtual int32_t pages_held(const SchedRun& run) const = 0;  // by a running one
  virtual int32_t pages_for(int32_t n) const = 0;
};

struct SchedulerOptions {
  int32_t max_running = 64;
  int32_t chunk = 512;       // prompt tokens of a step while nothing streams
  int32_t max_batch = 4096;  // tokens of a step
  double max_stall_ms = 200;
};

struct SchedItem {
  SchedRun* run;
  int32_t n;      // tokens from run->stored on, guesses included
  int32_t draft;  // of them, guesses
  // Whether the last known id is among them, so that a token can be drawn.
  bool draws() const { return run->stored + n >= run->known; }
};

struct SchedStep {
  std::vector<SchedItem> items;      // streams first
  std::vector<SchedRun*> preempted;  // now waiting again
  std::vector<SchedRun*> expired;    // past their deadline; released and removed
  StepShape shape;
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options) : options_(options) {}

  void add(SchedRun& run);     // waits from now on. Requires: it can run alone
  void remove(SchedRun& run);  // finished or cancelled; the owner gives its sequence back

  // Decides on a step. Admits, reserves, preempts and expires through `host`; valid until the next call. `spent_ms`:
  // what this turn has already taken of the time between two tokens.
  const SchedStep& next(SchedulerHost& host, double now_ms, double spent_ms = 0);
  // The step that next() gave took so long.
  void observe(double ms) { time_.observe(step_.shape, ms); }

  const StepTime& time() const { return time_; }
  bool empty() const { return waiting_.empty() && running_.empty(); }
  int32_t n_waiting() const { return static_cast<int32_t>(waiting_.size()); }
  int32_t n_running() const { return static_cast<int32_t>(running_.size()); }
  const std::vector<SchedRun*>& running() const { return running_; }
  const std::vector<SchedRun*>& waiting() const { return waiting_; }

 private:
  enum class Admitted : uint8_t { kYes, kNoRoom, kLater };
  static bool before(const SchedRun* a, const SchedRun* b);  // order of service
  static bool worse(const SchedRun* a, const SchedRun* b);   // a is pushed out rather than b
  void expire(SchedulerHost& host, double now_ms);
  bool make_room(SchedulerHost& host, SchedRun& run, int32_t n);  // reserve, preempting worse runs
  void preempt(SchedulerHost& host, SchedRun& run);
  Admitted admit(SchedulerHost& host, SchedRun& run);
  bool fits(const SchedulerHost& host, const SchedRun& run) const;
  void add_item(SchedRun& run, int32_t n, int32_t draft);
  void plan_streams(SchedulerHost& host);
  void plan_prompts(SchedulerHost& host, double spent_ms);

  SchedulerOptions options_;
  StepTime time_;
  std::vector<SchedRun*> waiting_, running_;
  std::map<uint64_t, SchedClient> clients_;  // that have runs
  SchedStep step_;
  std::vector<SchedRun*> order_;  // kept for its memory
};

}  // namespace minfer
