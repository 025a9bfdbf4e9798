// Computing and printing run statistics.
#include "stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/memory_info.h"
#include "engine/runner.h"
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

void StepTimes::hook_into(EngineOptions& options) {
  options.on_step = [this](const StepInfo& step) {
    if (decoding_) decode_ms_.push_back(step.forward_ms);
  };
}

void StepTimes::begin() {
  decoding_ = false;
  decode_ms_.clear();
}

StatsReport make_stats(const Response& response, const StepTimes& times, Engine& engine) {
  StatsReport r;
  const Timings& t = response.timings;
  const Choice& choice = response.choices[0];
  r.prompt_tokens = response.prompt_tokens;
  r.cached_tokens = response.cached_tokens;
  r.generated_tokens = response.generated_tokens;
  r.draft_tokens = response.draft_tokens;
  r.draft_tokens_accepted = response.draft_tokens_accepted;
  r.forward_ms = times.decode_ms();
  r.time_to_first_token_ms = t.first_token_ms;
  const bool drew = t.first_token_ms > 0;
  const double prefill_ms = (drew ? t.first_token_ms : t.total_ms) - t.queued_ms;
  if (prefill_ms > 0)
    r.prefill_tokens_per_second = static_cast<double>(r.prompt_tokens - r.cached_tokens) / prefill_ms * 1e3;
  // The end token was drawn as well, though it is not part of the answer.
  const int64_t drawn = r.generated_tokens + (choice.finish == FinishReason::kStop && choice.stop.empty() ? 1 : 0);
  const double decode_ms = t.total_ms - t.first_token_ms;
  if (drew && drawn > 1 && decode_ms > 0) r.decode_tokens_per_second = static_cast<double>(drawn - 1) / decode_ms * 1e3;
  r.peak_rss = peak_rss_bytes();
  const double mean_positions = static_cast<double>(r.prompt_tokens) + static_cast<double>(r.generated_tokens) / 2;
  int n_threads = 0;
  engine.inspect([&](Runner& runner) {
    if (auto plan = runner.plan_for(1, 1, 1, 0); plan.ok())
      r.ops_per_decode_token = static_cast<int>((*plan)->steps().size());
    const auto& kv = runner.kv_shape();
    r.bytes_per_token =
        static_cast<double>(runner.weights().bytes_read_per_token) +
        mean_positions * static_cast<double>(kv_bytes_per_token(runner.model().hparams(), kv.type_k, kv.type_v));
    n_threads = runner.pool().size();
  });
  const auto peak = cached_peak(n_threads);
  const Summary s = summarize(r.forward_ms);
  if (peak && s.median > 0)
    r.fraction_of_bandwidth = r.bytes_per_token / (s.median * 1e-3) / (peak->read_gb_per_s * 1e9);
  return r;
}

void StatsReport::add_to(nlohmann::ordered_json& j) const {
  const Summary s = summarize(forward_ms);
  j["prompt_tokens"] = prompt_tokens;
  j["cached_tokens"] = cached_tokens;
  j["generated_tokens"] = generated_tokens;
  j["draft_tokens"] = draft_tokens;
  j["draft_tokens_accepted"] = draft_tokens_accepted;
  j["time_to_first_token_ms"] = time_to_first_token_ms;
  j["prefill_tokens_per_second"] = prefill_tokens_per_second;
  j["decode_tokens_per_second"] = decode_tokens_per_second;
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
  const Summary s = summarize(forward_ms);
  std::string t;
  t += fmt::format("prompt_tokens: {} ({} from the cache)\ngenerated_tokens: {}\n", prompt_tokens, cached_tokens,
                   generated_tokens);
  t += fmt::format(
      "time_to_first_token_ms: {:.2f}\nprefill_tokens_per_second: {:.1f}\ndecode_tokens_per_second: {:.1f}\n",
      time_to_first_token_ms, prefill_tokens_per_second, decode_tokens_per_second);
  t += fmt::format("draft_tokens: {} ({} accepted)\n", draft_tokens, draft_tokens_accepted);
  t += fmt::format("per_forward_ms: min {:.3f}, median {:.3f}, max {:.3f}, n {}\n", s.min, s.median, s.max, s.n);
  t += fmt::format("ops_per_decode_token: {}\npeak_rss_bytes: {}\n", ops_per_decode_token, peak_rss);
  if (fraction_of_bandwidth >= 0)
    t += fmt::format("fraction_of_bandwidth: {:.3f}\n", fraction_of_bandwidth);
  else
    t += "fraction_of_bandwidth: unknown (measure this machine once with: minfer bench --peak)\n";
  return t;
}

}  // namespace minfer::cli
