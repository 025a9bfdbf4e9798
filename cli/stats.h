// The numbers of --stats and --json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common.h"
#include "engine/generate.h"

namespace minfer::cli {

struct StatsReport {
  GenerateStats stats;
  double load_ms = 0;
  int64_t peak_rss = 0;
  int ops_per_decode_token = 0;
  double bytes_per_token = 0;         // weights and mean KV a decode step streams
  double fraction_of_bandwidth = -1;  // of the measured read bandwidth; -1: not measured on this machine (bench --peak)
  void add_to(nlohmann::ordered_json& j) const;
  std::string text() const;
};

StatsReport make_stats(const GenerateStats& stats, Loaded& loaded);

struct Summary {
  double min = 0, median = 0, max = 0;
  size_t n = 0;
};
Summary summarize(std::vector<double> values);

}  // namespace minfer::cli
