// Workers that spin, then yield, then park; a central barrier; CPU counting that respects affinity and cgroups.
#include "base/thread_pool.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace minfer {
namespace {

// Spins before yielding: about 30 us of pause instructions, longer than the gap between two decode steps' hand-offs.
constexpr int kSpins = 2000;
// Yields before parking in the kernel: a parked worker costs tens of microseconds to wake.
constexpr int kYields = 200;
// Yields that took longer gave the core to somebody else. It comes back when their time slices end, milliseconds later,
// whereas who is woken from a park goes first: on a crowded machine parking is faster.
constexpr auto kCrowded = std::chrono::microseconds(200);
// Waits after such yields that park at once: few after a hiccup, many where it happens again and again.
constexpr int kLeastParks = 16, kMostParks = 4096;

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// A 32-bit event counter: wait until it differs from `seen`.
struct Event {
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};

  void wait_change(uint32_t seen, int spins, int yields) {
    for (int i = 0; i < spins; ++i) {
      if (value.load(std::memory_order_acquire) != seen) return;
      cpu_relax();
    }
    if (yields > 0 && yield_until_change(seen, yields)) return;
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    while (value.load(std::memory_order_seq_cst) == seen) value.wait(seen, std::memory_order_seq_cst);
    sleepers.fetch_sub(1, std::memory_order_relaxed);
  }

  bool yield_until_change(uint32_t seen, int yields) {
    thread_local int parks = 0, next_parks = kLeastParks;
    if (parks > 0) {
      --parks;
      return false;
    }
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < yields; ++i) {
      if (value.load(std::memory_order_acquire) != seen) break;
      sched_yield();
      if (i % 8 != 0 || std::chrono::steady_clock::now() - begin < kCrowded) continue;
      parks = next_parks;
      next_parks = std::min(2 * next_parks, kMostParks);
      return false;
    }
    next_parks = std::max(next_parks / 2, kLeastParks);
    return value.load(std::memory_order_acquire) != seen;
  }

  void signal() {
    value.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) value.notify_all();
  }
};

}  // namespace

struct ThreadPool::Impl {
  int n = 1;
  int spins = kSpins, yields = kYields;
  std::vector<std::thread> threads;
  std::vector<Worker> workers;
  const std::function<void(Worker&)>* fn = nullptr;
  bool stop = false;

  alignas(64) Event start;
  alignas(64) std::atomic<int> arrived{0};
  alignas(64) Event phase;
  bool failed_at_barrier = false;  // written by the last to arrive, read by all after the phase changed
  alignas(64) std::atomic<bool> failed{false};
  std::mutex error_mutex;
  Error error;

  bool barrier() {
    if (n == 1) return !failed.load(std::memory_order_relaxed);
    const uint32_t seen = phase.value.load(std::memory_order_acquire);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == n) {
      arrived.store(0, std::memory_order_relaxed);
      failed_at_barrier = failed.load(std::memory_order_acquire);
      phase.signal();
    } else {
      phase.wait_change(seen, spins, yields);
    }
    return !failed_at_barrier;  // stable: the next barrier cannot complete before this worker reaches it
  }

  void worker_main(int index) {
    prefer_short_slices();
    uint32_t seen = 0;
    for (;;) {
      start.wait_change(seen, spins, yields);
      ++seen;
      if (stop) return;
      (*fn)(workers[static_cast<size_t>(index)]);
      barrier();
    }
  }
};

bool Worker::barrier() { return pool_->impl_->barrier(); }

bool Worker::failed() const { return pool_->impl_->failed.load(std::memory_order_acquire); }

void Worker::fail(Error error) {
  auto& impl = *pool_->impl_;
  std::lock_guard lock(impl.error_mutex);
  if (impl.failed.load(std::memory_order_relaxed)) return;
  impl.error = std::move(error);
  impl.failed.store(true, std::memory_order_release);
}

ThreadPool::ThreadPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int n_threads) {
  constexpr int kMaxThreads = 1024;  // more than any machine's cores; a typo, not a wish
  if (n_threads < 1 || n_threads > kMaxThreads) {
    return make_error(ErrorCode::kInvalidArgument,
                      "[threads] found {}, expected 1 to {} (this machine has {} usable cores)", n_threads, kMaxThreads,
                      usable_cores());
  }
  auto impl = std::make_unique<Impl>();
  impl->n = n_threads;
  // With more threads than cores, spinning takes the core from the thread that is waited for.
  if (n_threads > usable_cores()) impl->spins = 50, impl->yields = 0;
  std::unique_ptr<ThreadPool> pool(new ThreadPool(std::move(impl)));
  Impl& i = *pool->impl_;
  i.workers.resize(static_cast<size_t>(n_threads));
  for (int t = 0; t < n_threads; ++t) {
    Worker& w = i.workers[static_cast<size_t>(t)];
    w.pool_ = pool.get();
    w.index_ = t;
    w.count_ = n_threads;
  }
  for (int t = 1; t < n_threads; ++t) {
    try {
      i.threads.emplace_back([&i, t] { i.worker_main(t); });
    } catch (const std::system_error& e) {
      i.n = t;  // so that the destructor joins what was started
      return make_error(ErrorCode::kResourceExhausted, "[threads] cannot start thread {} of {}: {}", t + 1, n_threads,
                        e.what());
    }
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  impl_->stop = true;
  impl_->start.signal();
  for (auto& t : impl_->threads) t.join();
}

int ThreadPool::size() const { return impl_->n; }

Status ThreadPool::run(const std::function<void(Worker&)>& fn) {
  Impl& i = *impl_;
  i.fn = &fn;
  i.failed.store(false, std::memory_order_relaxed);
  if (i.n > 1) i.start.signal();
  fn(i.workers[0]);
  i.barrier();
  if (i.failed.load(std::memory_order_acquire)) return std::move(i.error);
  return {};
}

namespace {

// sched_attr of <linux/sched/types.h>, first version; Debian 12's C library has neither it nor the calls.
struct SchedAttr {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;  // nanoseconds; for the usual policy `runtime` is the slice
};
static_assert(sizeof(SchedAttr) == 48);
constexpr uint64_t kSliceNs = 100'000;  // the least the kernel takes

// CPU quota of one cgroup as a number of cores, or a huge number without one.
int quota_cores() {
  int best = 1 << 20;
  std::ifstream self("/proc/self/cgroup");
  for (std::string line; std::getline(self, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers.find("cpu") == std::string::npos) continue;
    for (;;) {  // every ancestor's limit counts
      if (v2) {
        std::ifstream f("/sys/fs/cgroup" + path + "/cpu.max");
        std::string quota;
        long long period = 0;
        if (f >> quota >> period && quota != "max" && period > 0) {
          best = std::min<long long>(best, std::max<long long>(1, (std::atoll(quota.c_str()) + period - 1) / period));
        }
      } else {
        long long quota = 0, period = 0;
        std::ifstream fq("/sys/fs/cgroup/cpu" + path + "/cpu.cfs_quota_us"),
            fp("/sys/fs/cgroup/cpu" + path + "/cpu.cfs_period_us");
        if (fq >> quota && fp >> period && quota > 0 && period > 0) {
          best = std::min<long long>(best, std::max<long long>(1, (quota + period - 1) / period));
        }
      }
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return best;
}

}  // namespace

void prefer_short_slices() {
  SchedAttr attr{};
  attr.size = sizeof attr;
  if (syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0) != 0 || attr.policy != SCHED_OTHER) return;
  attr.runtime = kSliceNs;
  syscall(SYS_sched_setattr, 0, &attr, 0);  // refused: things stay as they are
}

int usable_cores() {
  static const int cores = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
      return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    }
    std::set<std::string> physical;  // hyper-threads of one core share the text of thread_siblings_list
    int logical = 0;
    for (int c = 0; c < CPU_SETSIZE; ++c) {
      if (!CPU_ISSET(c, &set)) continue;
      ++logical;
      std::ifstream f("/sys/devices/system/cpu/cpu" + std::to_string(c) + "/topology/thread_siblings_list");
      std::string siblings;
      physical.insert(std::getline(f, siblings) ? siblings : "cpu" + std::to_string(c));
    }
    const int n = std::min({static_cast<int>(physical.size()), logical, quota_cores()});
    return std::max(1, n);
  }();
  return cores;
}

}  // namespace minfer
