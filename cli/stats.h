// The numbers of --stats and --json about one answer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "minfer/engine.h"

namespace minfer::cli {

// Times the steps of an engine that answers one request at a time. It outlives the engine.
// Threads: hooked into the engine's; the others while no request runs.
class StepTimes {
 public:
  void hook_into(EngineOptions& options);
  void begin();                                                        // before each request
  void first_token() { decoding_ = true; }                             // from its first event on
  const std::vector<double>& decode_ms() const { return decode_ms_; }  // the model alone, a number for each step

 private:
  bool decoding_ = false;
  std::vector<double> decode_ms_;
};

struct StatsReport {
  int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, draft_tokens = 0, draft_tokens_accepted = 0;
  double time_to_first_token_ms = 0, prefill_tokens_per_second = 0, decode_tokens_per_second = 0;
  std::vector<double> forward_ms;  // of the steps after the first token
  int64_t peak_rss = 0;
  int ops_per_decode_token = 0;
  double bytes_per_token = 0;         // weights and mean KV that a step of one token streams
  double fraction_of_bandwidth = -1;  // of the measured read bandwidth; -1: not measured on this machine (bench --peak)
  void add_to(nlohmann::ordered_json& j) const;
  std::string text() const;
};

// Of a response with one choice. Requires: no request runs.
StatsReport make_stats(const Response& response, const StepTimes& times, Engine& engine);

struct Summary {
  double min = 0, median = 0, max = 0;
  size_t n = 0;
};
Summary summarize(std::vector<double> values);

}  // namespace minfer::cli
