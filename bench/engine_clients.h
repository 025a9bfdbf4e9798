// What the programs that measure the engine share: their flags, reproducible prompts, clients that note when tokens
// come.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "minfer/engine.h"
#include "model/model.h"
#include "trace/tracer.h"

namespace minfer::bench {

using Json = nlohmann::ordered_json;
using Ids = std::vector<int32_t>;

inline double now_ms() { return static_cast<double>(now_ns()) * 1e-6; }

// Speculation is off here unless asked for: greedy answers to prompts of random ids soon repeat themselves, and guesses
// would look better than they are.
inline EngineOptions default_options() {
  EngineOptions o;
  o.speculation = 0;
  return o;
}

inline void add_engine_flags(CLI::App& app, EngineOptions& o) {
  app.add_option("--threads", o.n_threads, "0: the cores this process may use");
  app.add_option("--isa", o.isa, "instruction set");
  app.add_option("--ctx", o.ctx, "positions of one sequence; 0: as the model was trained");
  app.add_option("--kv-memory", o.kv_memory, "bytes of K and V; 0: a quarter of the free memory");
  app.add_option_function<std::string>(
      "--cache-type", [&o](const std::string& type) { o.cache_type_k = o.cache_type_v = type; },
      "f32, f16, bf16 or q8_0");
  app.add_option("--chunk", o.chunk, "prompt tokens per step");
  app.add_option("--max-stall-ms", o.max_stall_ms, "longest wait between two tokens");
  app.add_option("--max-running", o.max_running, "sequences computed together");
  app.add_option("--speculation", o.speculation, "tokens guessed ahead; off unless given");
}

// Pseudo-random ids (splitmix64 of seed and index) from an eighth to a half of the vocabulary: ordinary tokens.
// compare_engine.py has the same function.
inline Ids random_ids(uint64_t seed, int n, int32_t n_vocab) {
  const auto lo = static_cast<uint64_t>(n_vocab / 8);
  const uint64_t span = std::max<uint64_t>(1, static_cast<uint64_t>(n_vocab / 2) - lo);
  Ids ids(static_cast<size_t>(n));
  for (size_t i = 0; i < ids.size(); ++i) {
    uint64_t z = (seed << 32) + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    ids[i] = static_cast<int32_t>(lo + (z ^ (z >> 31)) % span);
  }
  return ids;
}

// A greedy answer of exactly n tokens.
inline Request greedy(Ids prompt, int n) {
  Request r;
  r.prompt = std::move(prompt);
  r.sampling.temperature = 0;
  r.max_tokens = n;
  r.ignore_eos = true;
  return r;
}

struct Arrival {
  double ms;
  int ids;
};

// Submits at once and reads the answer on a thread of its own.
class Client {
 public:
  static Result<std::unique_ptr<Client>> start(Engine& engine, Request request) {
    const double submitted = now_ms();
    auto stream = MINFER_TRY(engine.submit(std::move(request)));
    return std::unique_ptr<Client>(new Client(submitted, std::move(stream)));
  }
  ~Client() {
    stream_.cancel();
    if (thread_.joinable()) thread_.join();
  }

  void wait_first() { first_.get_future().wait(); }  // the first token, or the end; once
  void cancel() { stream_.cancel(); }
  Result<Response> join() {
    thread_.join();
    return std::move(result_);
  }

  double submitted() const { return submitted_; }
  bool ended() const { return ended_.load(); }
  // After join().
  const std::vector<Arrival>& arrivals() const { return arrivals_; }
  double first_ms() const { return arrivals_.empty() ? -1 : arrivals_.front().ms - submitted_; }

 private:
  Client(double submitted, Stream stream) : submitted_(submitted), stream_(std::move(stream)) {
    thread_ = std::thread([this] { read(); });
  }

  void read() {
    for (;;) {
      auto event = stream_.next();
      if (!event.ok() || !*event) break;
      if ((*event)->ids.empty()) continue;
      arrivals_.push_back({now_ms(), static_cast<int>((*event)->ids.size())});
      if (arrivals_.size() == 1) first_.set_value();
    }
    ended_.store(true);
    if (arrivals_.empty()) first_.set_value();
    result_ = stream_.wait();
  }

  double submitted_;
  Stream stream_;
  std::atomic<bool> ended_{false};
  std::promise<void> first_;
  std::vector<Arrival> arrivals_;
  Result<Response> result_ = Error{ErrorCode::kInternal, "[bench] not read yet"};
  std::thread thread_;
};

inline double quantile(std::vector<double> v, double q) {
  if (v.empty()) return 0;
  const auto at = static_cast<size_t>(q * static_cast<double>(v.size() - 1));
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(at), v.end());
  return v[at];
}

inline Json quantiles(const std::vector<double>& v) {
  if (v.empty()) return {{"n", 0}};
  return {{"p50", quantile(v, 0.5)}, {"p99", quantile(v, 0.99)}, {"max", quantile(v, 1)}, {"n", v.size()}};
}

inline Json stats_json(const EngineStats& s) {
  return {{"steps", s.steps},
          {"preemptions", s.preemptions},
          {"plans_made", s.plans_made},
          {"tokens_prefilled", s.tokens_prefilled},
          {"tokens_cached", s.tokens_cached},
          {"tokens_generated", s.tokens_generated},
          {"draft_tokens", s.draft_tokens},
          {"draft_tokens_accepted", s.draft_tokens_accepted},
          {"kv_bytes", s.kv_bytes},
          {"kv_pages", s.kv_pages},
          {"stall_p50_ms", s.stall_p50_ms},
          {"stall_p99_ms", s.stall_p99_ms},
          {"stall_max_ms", s.stall_max_ms}};
}

}  // namespace minfer::bench
