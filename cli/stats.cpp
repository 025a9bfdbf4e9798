// Computing and printing run statistics.
#include "stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/memory_info.h"
#include "peak.h"

namespace minfer::cli {

Summary summarize(std::vector<double> v) {
  Summary s;
  s.n = v.size();
  if (v.empty()) return s;
  std::sort(v.begin(), v.end());
  s.min = v.front();
  s.max = v.back();
  s.median = v.size() % 2 == 1 ? v[v.size() / 2] : 0.5 * (v[v.size() / 2 - 1] + v[v.size() / 2]);
  return s;
}

StatsReport make_stats(const GenerateStats& stats, Loaded& loaded) {
  StatsReport r;
  r.stats = stats;
  r.peak_rss = peak_rss_bytes();
  Runner& runner = *loaded.runner;
  if (auto plan = runner.plan_for(1, 1, 1, 0); plan.ok())
    r.ops_per_decode_token = static_cast<int>((*plan)->steps().size());
  const double mean_positions =
      static_cast<double>(stats.prompt_tokens) + static_cast<double>(stats.generated_tokens) / 2;
  const auto& kv = runner.kv_shape();
  r.bytes_per_token =
      static_cast<double>(runner.weights().bytes_read_per_token) +
      mean_positions * static_cast<double>(kv_bytes_per_token(loaded.model->hparams(), kv.type_k, kv.type_v));
  const auto peak = cached_peak(runner.pool().size());
  const Summary s = summarize(stats.forward_ms);
  if (peak && s.median > 0)
    r.fraction_of_bandwidth = r.bytes_per_token / (s.median * 1e-3) / (peak->read_gb_per_s * 1e9);
  return r;
}

void StatsReport::add_to(nlohmann::ordered_json& j) const {
  const Summary s = summarize(stats.forward_ms);
  j["prompt_tokens"] = stats.prompt_tokens;
  j["cached_tokens"] = stats.cached_tokens;
  j["generated_tokens"] = stats.generated_tokens;
  j["time_to_first_token_ms"] = stats.time_to_first_token_ms;
  j["prefill_tokens_per_second"] = stats.prefill_tokens_per_second();
  j["decode_tokens_per_second"] = stats.decode_tokens_per_second();
  j["per_forward_ms"] = {{"min", s.min}, {"median", s.median}, {"max", s.max}, {"n", s.n}};
  j["ops_per_decode_token"] = ops_per_decode_token;
  j["peak_rss_bytes"] = peak_rss;
  j["bytes_per_token"] = bytes_per_token;
  if (fraction_of_bandwidth >= 0)
    j["fraction_of_bandwidth"] = fraction_of_bandwidth;
  else
    j["fraction_of_bandwidth"] = nullptr;
}

std::string StatsReport::text() const {
  const Summary s = summarize(stats.forward_ms);
  std::string t;
  t += fmt::format("prompt_tokens: {} ({} from the cache)\ngenerated_tokens: {}\n", stats.prompt_tokens,
                   stats.cached_tokens, stats.generated_tokens);
  t += fmt::format(
      "time_to_first_token_ms: {:.2f}\nprefill_tokens_per_second: {:.1f}\ndecode_tokens_per_second: {:.1f}\n",
      stats.time_to_first_token_ms, stats.prefill_tokens_per_second(), stats.decode_tokens_per_second());
  t += fmt::format("per_forward_ms: min {:.3f}, median {:.3f}, max {:.3f}, n {}\n", s.min, s.median, s.max, s.n);
  t += fmt::format("ops_per_decode_token: {}\npeak_rss_bytes: {}\n", ops_per_decode_token, peak_rss);
  if (fraction_of_bandwidth >= 0)
    t += fmt::format("fraction_of_bandwidth: {:.3f}\n", fraction_of_bandwidth);
  else
    t += "fraction_of_bandwidth: unknown (measure this machine once with: minfer bench --peak)\n";
  return t;
}

}  // namespace minfer::cli
