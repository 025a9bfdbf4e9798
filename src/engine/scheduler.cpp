// Deciding on a step: deadlines, streams, then prompts in order.
#include "engine/scheduler.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/error.h"

namespace minfer {
namespace {

// A step is planned to take this share of max_stall_ms: what is learned about time is never exact.
constexpr double kStallShare = 0.8;
// Prompt tokens of a step beside streams, however slow the machine: prompts never starve.
constexpr int32_t kLeastPart = 8;
// A token drawn costs a client as much as two of a prompt. Source: Sheng et al., "Fairness in Serving Large Language
// Models", OSDI 2024, whose counters `clients_` follows.
constexpr double kDrawCost = 2;

void erase(std::vector<SchedRun*>& list, SchedRun* run) {
  list.erase(std::remove(list.begin(), list.end(), run), list.end());
}

}  // namespace

bool Scheduler::worse(const SchedRun* a, const SchedRun* b) {
  return std::tuple(a->paused, -a->priority, a->arrival) > std::tuple(b->paused, -b->priority, b->arrival);
}

bool Scheduler::before(const SchedRun* a, const SchedRun* b) {
  const auto key = [](const SchedRun* r) {
    return std::tuple(-r->priority, r->account->service, !r->running, r->arrival);
  };
  return key(a) < key(b);
}

void Scheduler::add(SchedRun& run) {
  auto [it, fresh] = clients_.try_emplace(run.client);
  if (fresh) {  // it owes nothing and is owed nothing: level with the least served one
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [id, c] : clients_) {
      if (c.runs > 0) least = std::min(least, c.service);
    }
    it->second.service = least < std::numeric_limits<double>::infinity() ? least : 0;
  }
  ++it->second.runs;
  run.account = &it->second;
  waiting_.push_back(&run);
}

void Scheduler::remove(SchedRun& run) {
  erase(run.running ? running_ : waiting_, &run);
  run.running = false;
  run.account = nullptr;
  const auto it = clients_.find(run.client);
  if (--it->second.runs == 0) clients_.erase(it);
}

void Scheduler::preempt(SchedulerHost& host, SchedRun& run) {
  host.release(run);
  run.running = false;
  run.pushed_out = true;
  run.draft = 0;
  erase(running_, &run);
  waiting_.push_back(&run);
  step_.preempted.push_back(&run);
  std::erase_if(step_.items, [&](const SchedItem& item) { return item.run == &run; });
}

void Scheduler::expire(SchedulerHost& host, double now_ms) {
  for (auto* list : {&running_, &waiting_}) {
    for (SchedRun* run : *list) {
      if (run->deadline_ms > 0 && now_ms >= run->deadline_ms) step_.expired.push_back(run);
    }
  }
  for (SchedRun* run : step_.expired) {
    if (run->running) host.release(*run);
    remove(*run);
  }
}

bool Scheduler::make_room(SchedulerHost& host, SchedRun& run, int32_t n) {
  while (!host.reserve(run, n)) {
    SchedRun* victim = nullptr;
    for (SchedRun* r : running_) {
      if (r != &run && worse(r, &run) && (victim == nullptr || worse(r, victim))) victim = r;
    }
    if (victim == nullptr) return false;
    preempt(host, *victim);
  }
  return true;
}

void Scheduler::add_item(SchedRun& run, int32_t n, int32_t draft) {
  step_.items.push_back({&run, n, draft});
  const int32_t charge = std::max(0, run.stored + n - draft - run.charged);
  run.charged += charge;
  run.account->service += run.is_stream() ? kDrawCost * charge : charge;
}

void Scheduler::plan_streams(SchedulerHost& host) {
  order_.clear();
  for (SchedRun* run : running_) {
    if (run->is_stream() && !run->paused) order_.push_back(run);
  }
  std::sort(order_.begin(), order_.end(), [](const SchedRun* a, const SchedRun* b) { return worse(b, a); });
  int32_t left = options_.max_batch;
  for (SchedRun* run : order_) {
    if (!run->running || left == 0) continue;  // pushed out by one before it
    const int32_t draft = std::min(run->draft, left - 1);
    if (draft > 0 && host.reserve(*run, run->known + draft)) {
      add_item(*run, 1 + draft, draft);
      left -= 1 + draft;
    } else if (make_room(host, *run, run->known)) {
      add_item(*run, 1, 0);
      --left;
    } else {  // it is the worst itself
      preempt(host, *run);
    }
  }
}

// What running prompts and streams still need, and the new run's prompt, must be there.
bool Scheduler::fits(const SchedulerHost& host, const SchedRun& run) const {
  int64_t need = host.pages_for(run.known + 1) - host.pages_held(run);
  for (const SchedRun* r : running_) {
    if (r == &run) continue;
    need += std::max(1, host.pages_for(r->known + 1) - host.pages_held(*r));
  }
  return need <= host.pages_available();
}

Scheduler::Admitted Scheduler::admit(SchedulerHost& host, SchedRun& run) {
  // Who may be pushed out so that this one gets in, the worst first.
  const auto victim = [&]() -> SchedRun* {
    SchedRun* worst = nullptr;
    for (SchedRun* r : running_) {
      if ((r->paused || r->priority < run.priority) && (worst == nullptr || worse(r, worst))) worst = r;
    }
    return worst;
  };
  while (n_running() >= options_.max_running) {
    SchedRun* v = victim();
    if (v == nullptr) return Admitted::kNoRoom;
    preempt(host, *v);
  }
  if (!host.admit(run)) return Admitted::kLater;
  while (!running_.empty() && !fits(host, run)) {
    SchedRun* v = victim();
    if (v == nullptr) {
      host.release(run);
      return Admitted::kNoRoom;
    }
    preempt(host, *v);
  }
  run.running = true;
  erase(waiting_, &run);
  running_.push_back(&run);
  return Admitted::kYes;
}

void Scheduler::plan_prompts(SchedulerHost& host, double spent_ms) {
  order_.clear();
  for (SchedRun* run : running_) {
    if (!run->is_stream() && !run->paused) order_.push_back(run);
  }
  for (SchedRun* run : waiting_) {
    if (!run->paused && !run->pushed_out) order_.push_back(run);
  }
  int32_t budget = -1;  // not known before the depth of the first part is
  bool full = false;    // one before these did not get in: nobody passes it
  // Sorted as far as needed: of a long queue only the front is looked at.
  const auto later = [](const SchedRun* a, const SchedRun* b) { return before(b, a); };
  std::make_heap(order_.begin(), order_.end(), later);
  for (int32_t looked_at = 0; !order_.empty() && looked_at < 2 * options_.max_running + 16; ++looked_at) {
    std::pop_heap(order_.begin(), order_.end(), later);
    SchedRun* run = order_.back();
    order_.pop_back();
    if (run->pushed_out) continue;
    if (run->running) {
      host.catch_up(*run);
    } else {
      const Admitted admitted = full ? Admitted::kNoRoom : admit(host, *run);
      full = full || admitted == Admitted::kNoRoom;
      if (admitted != Admitted::kYes) continue;
    }
    if (budget < 0) {
      int32_t rows = 0;
      for (const SchedItem& item : step_.items) rows += item.n;
      const int32_t most = std::min(options_.chunk, options_.max_batch - rows);
      budget = rows == 0 ? most
                         : time_.prefill_budget(rows, run->stored, kStallShare * options_.max_stall_ms - spent_ms,
                                                std::min(kLeastPart, most), most);
      if (budget < most && budget > kLeastPart) budget -= budget % kLeastPart;  // few sizes, so that plans come again
    }
    const int32_t n = std::min({run->known - run->stored, budget, run->max_part});
    if (n <= 0) break;
    if (!make_room(host, *run, run->stored + n)) continue;
    budget -= n;
    add_item(*run, n, 0);
    if (budget == 0) break;
  }
}

const SchedStep& Scheduler::next(SchedulerHost& host, double now_ms, double spent_ms) {
  step_.items.clear();
  step_.preempted.clear();
  step_.expired.clear();
  expire(host, now_ms);
  plan_streams(host);
  plan_prompts(host, spent_ms);
  for (SchedRun* run : step_.preempted) run->pushed_out = false;
  step_.shape = {};
  for (const SchedItem& item : step_.items) {
    if (item.run->is_stream()) {
      step_.shape.decode_rows += item.n;
    } else {
      step_.shape.prefill_tokens += item.n;
      step_.shape.prefill_depth += int64_t{item.n} * item.run->stored + int64_t{item.n} * (item.n - 1) / 2;
    }
  }
  return step_;
}

}  // namespace minfer
