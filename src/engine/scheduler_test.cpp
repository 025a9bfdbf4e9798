// Scheduler and StepTime without a model: a host that only counts pages, and a clock that follows a formula.
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <random>

namespace minfer {
namespace {

constexpr int32_t kPage = 8;

class CountingHost final : public SchedulerHost {
 public:
  explicit CountingHost(int32_t pages) : free_(pages) {}
  bool admit(SchedRun& run) override {
    EXPECT_EQ(held_.count(&run), 0u);
    held_[&run] = 0;
    run.stored = 0;
    return !later.count(&run) || (held_.erase(&run), false);
  }
  void catch_up(SchedRun& run) override { EXPECT_EQ(held_.count(&run), 1u); }
  bool reserve(SchedRun& run, int32_t n) override {
    const int32_t more = pages_for(n) - held_.at(&run);
    if (more > free_) return false;
    if (more > 0) held_[&run] += more, free_ -= more;
    return true;
  }
  void release(SchedRun& run) override {
    free_ += held_.at(&run);
    held_.erase(&run);
    run.stored = 0;
  }
  int32_t pages_available() const override { return free_; }
  int32_t pages_for(int32_t n) const override { return (n + kPage - 1) / kPage; }
  int32_t pages_held(const SchedRun& run) const override { return held_.at(const_cast<SchedRun*>(&run)); }
  int32_t held(SchedRun& run) const { return held_.count(&run) ? held_.at(&run) : 0; }
  std::map<SchedRun*, bool> later;

 private:
  int32_t free_;
  std::map<SchedRun*, int32_t> held_;
};

SchedRun run_of(uint64_t arrival, int32_t prompt, int32_t priority = 0, uint64_t client = 0) {
  SchedRun r;
  r.arrival = arrival, r.known = prompt, r.priority = priority, r.client = client;
  return r;
}

// As the engine does after a step: K and V are stored, and one token is drawn where the last known id was fed.
void apply(const SchedStep& step) {
  for (const SchedItem& item : step.items) {
    const bool draws = item.draws();
    item.run->stored += item.n - item.draft;
    if (draws) ++item.run->known;
  }
}

std::vector<std::pair<uint64_t, int32_t>> items(const SchedStep& step) {
  std::vector<std::pair<uint64_t, int32_t>> out;
  for (const SchedItem& item : step.items) out.emplace_back(item.run->arrival, item.n);
  return out;
}
using Items = std::vector<std::pair<uint64_t, int32_t>>;

TEST(Scheduler, StreamsGoFirstAndPromptsGetTheRest) {
  CountingHost host(100);
  Scheduler s({4, 16, 64, 200});
  SchedRun a = run_of(1, 10), b = run_of(2, 40);
  s.add(a);
  s.add(b);
  const auto step = [&] {
    const SchedStep& st = s.next(host, 0);
    const Items got = items(st);
    apply(st);
    return got;
  };
  EXPECT_EQ(step(), (Items{{1, 10}, {2, 6}}));  // 16 tokens while nothing streams
  EXPECT_EQ(step(), (Items{{1, 1}, {2, 8}}));   // nothing known about time: the least part
  s.observe(1);
  EXPECT_EQ(step(), (Items{{1, 1}, {2, 16}}));  // fast: all of the chunk
  s.remove(a);
  EXPECT_EQ(step(), (Items{{2, 10}}));
  EXPECT_EQ(step(), (Items{{2, 1}}));
}

TEST(Scheduler, LargerPrioritiesFirstAndThenTheClientServedLeast) {
  CountingHost host(1000);
  Scheduler s({16, 10, 64, 200});
  // Client 1 sends three long prompts before client 2 sends one; a prompt of larger priority comes last.
  SchedRun a = run_of(1, 20, 0, 1), b = run_of(2, 20, 0, 1), c = run_of(3, 20, 0, 1), d = run_of(4, 20, 0, 2),
           e = run_of(5, 10, 1, 1);
  for (SchedRun* r : {&a, &b, &c, &d, &e}) s.add(*r);
  std::vector<uint64_t> order;
  for (int i = 0; i < 5; ++i) {
    const SchedStep& st = s.next(host, 0);
    for (const auto& [arrival, n] : items(st)) {
      if (n >= 8) order.push_back(arrival);
    }
    apply(st);
  }
  ASSERT_GE(order.size(), 3u);
  EXPECT_EQ(order[0], 5u);  // the larger priority
  EXPECT_EQ(order[1], 4u);  // client 2, which was not served yet
}

TEST(Scheduler, WithoutPagesTheLeastImportantGoesBackToWaiting) {
  CountingHost host(6);  // 48 positions
  Scheduler s({4, 64, 64, 200});
  SchedRun a = run_of(1, 23), b = run_of(2, 15);
  s.add(a);
  s.add(b);
  apply(s.next(host, 0));
  EXPECT_TRUE(a.running && b.running);
  bool out = false;
  for (int i = 0; i < 40 && !out; ++i) {
    const SchedStep& st = s.next(host, 0);
    for (SchedRun* r : st.preempted) {
      EXPECT_EQ(r, &b);  // same priority, later
      out = true;
    }
    apply(st);
  }
  EXPECT_TRUE(out);
  EXPECT_TRUE(a.running);
  EXPECT_FALSE(b.running);
  EXPECT_EQ(host.held(b), 0);
  s.remove(a);
  host.release(a);
  EXPECT_EQ(items(s.next(host, 0)), (Items{{2, b.known}}));  // and comes in again, all of it
}

TEST(Scheduler, ALargerPriorityPushesOut) {
  CountingHost host(4);
  Scheduler s({1, 64, 64, 200});
  SchedRun a = run_of(1, 20), b = run_of(2, 20, 1), c = run_of(3, 5, 0);
  s.add(a);
  apply(s.next(host, 0));
  s.add(c);
  apply(s.next(host, 0));
  EXPECT_FALSE(c.running);  // one at a time, equal priority
  s.add(b);
  const SchedStep& st = s.next(host, 0);
  ASSERT_EQ(st.preempted.size(), 1u);
  EXPECT_EQ(st.preempted[0], &a);
  EXPECT_EQ(items(st), (Items{{2, 20}}));
}

TEST(Scheduler, DeadlinesAndPauses) {
  CountingHost host(10);
  Scheduler s({4, 64, 64, 200});
  SchedRun a = run_of(1, 10), b = run_of(2, 10);
  a.deadline_ms = 100;
  s.add(a);
  s.add(b);
  apply(s.next(host, 99));
  const SchedStep& st = s.next(host, 100);
  ASSERT_EQ(st.expired.size(), 1u);
  EXPECT_EQ(st.expired[0], &a);
  EXPECT_EQ(host.held(a), 0);
  EXPECT_EQ(items(st), (Items{{2, 1}}));
  apply(st);
  b.paused = true;
  EXPECT_TRUE(s.next(host, 101).items.empty());
  EXPECT_GT(host.held(b), 0);
  SchedRun c = run_of(3, 70);  // needs what the paused one holds
  s.add(c);
  EXPECT_EQ(items(s.next(host, 102)), (Items{{3, 64}}));
  EXPECT_EQ(host.held(b), 0);
}

TEST(Scheduler, WhoWaitsForASharedPrefixLetsOthersPass) {
  CountingHost host(100);
  Scheduler s({4, 64, 64, 200});
  SchedRun a = run_of(1, 10), b = run_of(2, 10);
  host.later[&a] = true;
  s.add(a);
  s.add(b);
  EXPECT_EQ(items(s.next(host, 0)), (Items{{2, 10}}));
}

TEST(Scheduler, GuessesAreDroppedBeforeAnythingElse) {
  CountingHost host(2);
  Scheduler s({4, 64, 64, 200});
  SchedRun a = run_of(1, 14);
  s.add(a);
  apply(s.next(host, 0));  // 14 stored, 15 known
  a.draft = 1;
  EXPECT_EQ(items(s.next(host, 0)), (Items{{1, 2}}));
  a.draft = 2;  // a third page
  const SchedStep& st = s.next(host, 0);
  EXPECT_EQ(items(st), (Items{{1, 1}}));
  EXPECT_EQ(st.items[0].draft, 0);
}

// Random loads: everything ends, memory is never exceeded, every stream that is not paused advances in every step or is
// pushed out by one that goes before it.
TEST(Scheduler, RandomLoadsEnd) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int32_t n) { return static_cast<int32_t>(random() % static_cast<uint32_t>(n)); };
    const int32_t pages = 4 + below(30);
    CountingHost host(pages);
    Scheduler s({1 + below(6), 1 + below(40), 64, 1.0 + below(50)});
    std::deque<SchedRun> runs;
    std::map<SchedRun*, int32_t> until;  // known ids at the end
    int live = 0, steps = 0;
    const int total = 1 + below(30);
    while (static_cast<int>(runs.size()) < total || live > 0) {
      ASSERT_LT(++steps, 20000) << "seed " << seed;
      if (static_cast<int>(runs.size()) < total && below(3) == 0) {
        const int32_t most = pages * kPage;
        const int32_t prompt = 1 + below(most);
        runs.push_back(run_of(runs.size() + 1, prompt, below(3), static_cast<uint64_t>(below(3))));
        until[&runs.back()] = std::min(most + 1, prompt + 1 + below(20));
        s.add(runs.back());
        ++live;
      }
      const SchedStep& st = s.next(host, 0);
      std::map<SchedRun*, int> seen;
      for (const SchedItem& item : st.items) {
        EXPECT_EQ(++seen[item.run], 1);
        EXPECT_TRUE(item.run->running);
        EXPECT_GE(host.held(*item.run) * kPage, item.run->stored + item.n);
      }
      for (SchedRun* r : s.running()) EXPECT_TRUE(!r->is_stream() || r->paused || seen.count(r) == 1);
      ASSERT_TRUE(live == 0 || !st.items.empty()) << "seed " << seed;
      const double ms = 1 + 0.2 * st.shape.prefill_tokens;
      apply(st);
      s.observe(ms);
      for (auto& [run, end] : until) {
        if (run->account == nullptr || run->known < end) continue;
        s.remove(*run);
        host.release(*run);
        --live;
      }
    }
    EXPECT_EQ(host.pages_available(), pages);
    EXPECT_TRUE(s.empty());
  }
}

// A machine that needs 20 ms for a decode step, 1 ms per prompt token and as much again per 2,000 positions of depth.
double machine_ms(const StepShape& s) {
  return (s.decode_rows > 0 ? 20 + 0.2 * s.decode_rows : 5) + s.prefill_tokens +
         static_cast<double>(s.prefill_depth) / 2000;
}

TEST(Scheduler, NoStreamWaitsLongerThanPromised) {
  CountingHost host(100000);
  Scheduler s({64, 512, 4096, 200});
  std::deque<SchedRun> runs;
  for (uint64_t i = 1; i <= 8; ++i) s.add(runs.emplace_back(run_of(i, 20)));
  for (int i = 0; i < 5; ++i) {
    const SchedStep& st = s.next(host, 0);
    const double ms = machine_ms(st.shape);
    apply(st);
    s.observe(ms);
  }
  s.add(runs.emplace_back(run_of(9, 4000)));
  s.add(runs.emplace_back(run_of(10, 9000)));
  int steps = 0;
  double longest = 0, sum = 0;
  while (runs[9].known == 9000) {
    const SchedStep& st = s.next(host, 0);
    const double ms = machine_ms(st.shape);
    longest = std::max(longest, ms), sum += ms;
    apply(st);
    s.observe(ms);
    ASSERT_LT(++steps, 10000);
  }
  EXPECT_LE(longest, 200);
  EXPECT_GE(sum / steps, 100);  // and the time is made use of
}

TEST(StepTime, LearnsAMachine) {
  StepTime t;
  EXPECT_EQ(t.decode_ms(3), 0);
  EXPECT_EQ(t.prefill_budget(1, 0, 100, 8, 512), 8);
  for (int i = 0; i < 40; ++i) {
    for (int32_t rows : {1, 8, 16}) t.observe({rows, 0, 0}, machine_ms({rows, 0, 0}));
    const int32_t n = 30 + i;
    const int64_t depth = int64_t{n} * (i * 100);
    t.observe({8, n, depth}, machine_ms({8, n, depth}));
  }
  EXPECT_NEAR(t.decode_ms(8), 21.6, 0.5);
  EXPECT_NEAR(t.decode_ms(4), 20.8, 0.5);
  EXPECT_NEAR(t.prefill_ms(100, 0), 100, 5);
  EXPECT_NEAR(t.prefill_ms(100, 100 * 2000), 200, 10);
  const int32_t n = t.prefill_budget(8, 2000, 160, 8, 512);
  EXPECT_NEAR(n, 68, 4);
  EXPECT_EQ(t.prefill_budget(8, 0, 10, 8, 512), 8);
  EXPECT_EQ(t.prefill_budget(8, 0, 1e9, 8, 512), 512);
  // One step that was held up by something else does not spoil it.
  t.observe({8, 50, 0}, 60000);
  EXPECT_LT(t.prefill_ms(100, 0), 300);
  for (double bad : {0.0, -1.0, std::nan("")}) t.observe({8, 50, 0}, bad);
  EXPECT_TRUE(std::isfinite(t.prefill_ms(100, 1000)));
}

}  // namespace
}  // namespace minfer
