// Layers: engine
// Random load on the engine for -t seconds: does memory stay flat, do pages balance, does the same question always get
// the same answer?
//   bench_load MODEL [-t 60] [-s 16] [--kv-memory BYTES] [--seed 1] [--kv-store DIR]
// Clients send prompts that share beginnings, of all lengths, priorities and samplers; some cancel, some have
// deadlines. One request in twelve is a question with a known answer. Prints one JSON object; exit code 1 when
// something is wrong. What it says of memory means something from minutes on, when every page was touched.
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <random>

#include "engine_clients.h"

namespace minfer::bench {
namespace {

struct Flags {
  EngineOptions options;
  std::string model;
  double seconds = 60;
  int clients = 16;
  uint64_t seed = 1;
};

constexpr int kPrefixes = 8, kQuestions = 4, kAnswer = 24;
constexpr int kSamples = 50;             // of memory over the run
constexpr double kWarmUp = 0.2;          // of the run; memory is compared from there on
constexpr double kFlat = 0.02;           // growth after that which is noise of the allocator
constexpr int64_t kFlatBytes = 4 << 20;  // the same for short runs and small models

int64_t rss_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Bytes that the program holds, as against what its allocator keeps for later; in the arenas of all threads.
int64_t live_bytes() {
  const auto m = mallinfo2();
  return static_cast<int64_t>(m.uordblks + m.hblkhd);
}

class Load {
 public:
  Load(Engine& engine, const Flags& flags) : engine_(engine), f_(flags) {}

  // The known answers, each computed alone; and the largest step that can come, so that its memory is there from the
  // start.
  Status prepare() {
    const int longest = std::max(8, std::min(1500, engine_.n_ctx() / 2));
    Request largest = greedy(ids(1, longest + longest / 2), 1);
    largest.prompt_logprobs = true;
    MINFER_TRY(engine_.run(std::move(largest)));
    for (int q = 0; q < kQuestions; ++q) answers_.push_back(MINFER_TRY(engine_.run(question(q))).choices[0].ids);
    return {};
  }

  Json run() {
    std::vector<std::thread> threads;
    for (int i = 0; i < f_.clients; ++i) threads.emplace_back([this, i] { work(i); });
    const double t0 = now_ms();
    for (int i = 0; i <= kSamples; ++i) {
      const double until = t0 + f_.seconds * 1e3 * i / kSamples;
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(std::max(0.0, until - now_ms())));
      rss_.push_back(rss_bytes());
      live_.push_back(live_bytes());
    }
    stop_.store(true);
    for (auto& t : threads) t.join();
    return report();
  }

  bool sound() const { return sound_; }

 private:
  using Random = std::mt19937_64;
  static int pick(Random& r, int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(r); }
  static bool chance(Random& r, int percent) { return pick(r, 1, 100) <= percent; }

  Ids ids(uint64_t stream, int n) const { return random_ids(stream, n, engine_.model().hparams().n_vocab); }
  Request question(int q) const { return greedy(ids(1000000 + static_cast<uint64_t>(q), 40 + 37 * q), kAnswer); }

  Request random_request(Random& r, int client) const {
    const int longest = std::max(8, std::min(1500, engine_.n_ctx() / 2));
    const int size = chance(r, 10) ? longest : std::max(8, longest / 8);
    Request q;
    if (chance(r, 70)) q.prompt = ids(static_cast<uint64_t>(pick(r, 1, kPrefixes)), pick(r, 1, size));
    const Ids own = ids(r(), pick(r, 1, std::max(1, size / 2)));
    q.prompt.insert(q.prompt.end(), own.begin(), own.end());
    q.max_tokens = pick(r, 1, std::min(96, std::max(1, engine_.n_ctx() / 4)));
    q.ignore_eos = chance(r, 50);
    q.n = chance(r, 10) ? pick(r, 2, 4) : 1;
    q.sampling.temperature = chance(r, 40) ? 0.0f : 0.8f;
    q.sampling.seed = r();
    if (chance(r, 20)) q.sampling.repeat_penalty = 1.1f;
    if (chance(r, 10)) q.top_logprobs = pick(r, 1, 5), q.logprobs = true;
    if (chance(r, 3)) q.prompt_logprobs = true;
    if (chance(r, 20)) q.priority = pick(r, -1, 2);
    if (chance(r, 5)) q.deadline_ms = pick(r, 20, 3000);
    if (chance(r, 30)) q.speculate = false;
    q.client = std::to_string(client % 5);
    return q;
  }

  void work(int client) {
    Random r(f_.seed * 1000 + static_cast<uint64_t>(client));
    while (!stop_.load()) {
      if (chance(r, 8)) {
        ask(pick(r, 0, kQuestions - 1));
      } else {
        one(r, client);
      }
    }
  }

  void ask(int q) {
    const auto response = engine_.run(question(q));
    if (!response.ok()) return count(response.error().message);
    ++questions_;
    if (response->choices[0].ids != answers_[static_cast<size_t>(q)]) ++wrong_;
  }

  void one(Random& r, int client) {
    auto stream = engine_.submit(random_request(r, client));
    if (!stream.ok()) return count(stream.error().message);
    const int cancel_after = chance(r, 15) ? pick(r, 0, 20) : -1;
    for (int events = 0;; ++events) {
      if (events == cancel_after) stream->cancel();
      const auto event = stream->next();
      if (!event.ok()) return count(event.error().message);
      if (!*event) break;
    }
    const auto response = stream->wait();
    if (!response.ok()) return count(response.error().message);
    const std::lock_guard lock(mutex_);
    for (const Choice& c : response->choices) ++finished_[finish_reason_name(c.finish)];
    preempted_ += response->preemptions > 0;
  }

  void count(const std::string& message) {
    const std::lock_guard lock(mutex_);
    // By their beginning: numbers make every message another one.
    ++errors_[message.substr(0, message.find_first_of("0123456789"))];
  }

  Json report() {
    const Status idle = engine_.check_idle();
    const Status empty = engine_.check_idle(/*clear=*/true);
    const EngineStats s = engine_.stats();
    const size_t warm = static_cast<size_t>(kWarmUp * kSamples);
    const int64_t before = rss_[warm], after = rss_.back();
    const int64_t most = std::max(kFlatBytes, static_cast<int64_t>(kFlat * static_cast<double>(before)));
    const bool balance = idle.ok() && empty.ok() && s.kv_pages_free == s.kv_pages;
    const bool flat = after - before <= most;
    sound_ = balance && flat && wrong_ == 0 && errors_.empty();
    Json out = {{"scenario", "load"},
                {"seconds", f_.seconds},
                {"clients", f_.clients},
                {"sound", sound_},
                {"rss_start", rss_[0]},
                {"rss_after_warm_up", before},
                {"rss_end", after},
                {"rss_growth", after - before},
                {"memory_flat", flat},
                {"pages_balance", balance},
                {"questions", questions_.load()},
                {"wrong_answers", wrong_.load()},
                {"finished", finished_},
                {"preempted", preempted_},
                {"errors", errors_},
                {"rss", rss_},
                {"live", live_},
                {"kv_pages_free", s.kv_pages_free},
                {"engine", stats_json(s)}};
    if (!idle.ok()) out["idle_error"] = idle.error().message;
    if (!empty.ok()) out["empty_error"] = empty.error().message;
    return out;
  }

  Engine& engine_;
  const Flags& f_;
  std::vector<Ids> answers_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> questions_{0}, wrong_{0};
  std::mutex mutex_;
  std::map<std::string, int64_t> finished_, errors_;
  int64_t preempted_ = 0;
  std::vector<int64_t> rss_, live_;
  bool sound_ = false;
};

Result<int> run(const Flags& f) {
  const auto engine = MINFER_TRY(Engine::open(f.model, f.options));
  Load load(*engine, f);
  MINFER_TRY(load.prepare());
  std::printf("%s\n", load.run().dump().c_str());
  return load.sound() ? 0 : 1;
}

}  // namespace
}  // namespace minfer::bench

int main(int argc, char** argv) {
  using namespace minfer::bench;
  CLI::App app("Random load on the engine: memory, pages, answers");
  Flags f;
  f.options.kv_memory = int64_t{64} << 20;  // scarce: sequences are pushed out, and soon every page was touched
  app.add_option("model", f.model)->required();
  app.add_option("-t", f.seconds, "seconds")->check(CLI::Range(1.0, 1e6));
  app.add_option("-s", f.clients, "clients")->check(CLI::Range(1, 1024));
  app.add_option("--seed", f.seed, "of the requests");
  app.add_option("--kv-store", f.options.kv_store, "a folder for pages that leave the cache");
  add_engine_flags(app, f.options);
  CLI11_PARSE(app, argc, argv);
  const auto code = run(f);
  if (code.ok()) return *code;
  std::fprintf(stderr, "%s\n", code.error().message.c_str());
  return 1;
}
