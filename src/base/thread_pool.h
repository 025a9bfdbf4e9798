// ThreadPool: runs one function on all its threads at once (SPMD), with a barrier and shared counters inside.
// A run costs one hand-off (workers spin for a while before they park), so a whole graph is one run and its
// ops are separated by barriers.
// Threads: run() may be called from one thread at a time; the caller takes part as worker 0.
// Errors:  a worker reports through fail(); the first error is what run() returns. Workers keep meeting at
//          barriers after a failure, so code after a barrier must check failed() before trusting results.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/error.h"

namespace minfer {

class ThreadPool;

class Worker {
 public:
  int index() const { return index_; }
  int count() const { return count_; }
  // Waits for all workers of this run; blocks. True when nobody had failed when the last one arrived: the same answer
  // for every worker, so all may leave together (failed() alone may differ between workers).
  bool barrier();
  bool failed() const;     // somebody called fail() in this run
  void fail(Error error);  // keeps the first error; does not stop the others

  // The half-open share [begin, end) of n items for this worker, in multiples of `grain`.
  struct Range {
    int64_t begin, end;
  };
  Range share(int64_t n, int64_t grain = 1) const {
    const int64_t units = (n + grain - 1) / grain;
    const int64_t b = units * index_ / count_ * grain, e = units * (index_ + 1) / count_ * grain;
    return {b < n ? b : n, e < n ? e : n};
  }

 private:
  friend class ThreadPool;
  ThreadPool* pool_ = nullptr;
  int index_ = 0;
  int count_ = 1;
};

class ThreadPool {
 public:
  // n_threads >= 1, the calling thread included.
  static Result<std::unique_ptr<ThreadPool>> create(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;
  // Calls fn on every worker and waits for all. fn must not throw.
  Status run(const std::function<void(Worker&)>& fn);

 private:
  friend class Worker;
  struct Impl;
  explicit ThreadPool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Asks the kernel for short time slices of the calling thread: on a crowded machine, who is woken then goes on at once
// instead of when the slice of another ends, milliseconds later; the share of the time stays the same. Linux 6.12 and
// later (sched_setattr(2), EEVDF), nothing elsewhere. The workers of a pool have it; who calls run() should.
void prefer_short_slices();

// Cores this process may really use: affinity mask, cgroup CPU quota and physical cores (not hyper-threads).
int usable_cores();

}  // namespace minfer
