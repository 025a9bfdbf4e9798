// check_sampling(): the range of every field, and the settings that exclude each other.
#include <array>
#include <cmath>

#include "base/error.h"
#include "minfer/sampling.h"
#include "sample/dry_breakers.h"

namespace minfer {
namespace {

struct Rule {
  const char* name;
  double value, lo, hi;
  bool above_lo = false;  // lo itself is out
};

constexpr double kManyIds = 1e9;
constexpr size_t kBreakerIds = 64;  // longer than any marker of a turn

// Whole numbers with every digit; others as the float they are.
std::string number_text(double v) {
  constexpr double kWhole = 1e15;
  return std::fabs(v) < kWhole && v == std::floor(v) ? fmt::format("{:.0f}", v)
                                                     : fmt::format("{}", static_cast<float>(v));
}

Status check_breakers(const SamplingParams& p) {
  size_t total = 0;
  for (size_t i = 0; i < p.dry_breakers.size(); ++i) {
    const auto& sequence = p.dry_breakers[i];
    if (sequence.empty() || sequence.size() > kBreakerIds) {
      return make_error(ErrorCode::kInvalidArgument, "[sample] dry_breakers: sequence {} has {} ids, expected 1 to {}",
                        i + 1, sequence.size(), kBreakerIds);
    }
    for (int32_t id : sequence) {
      if (id < 0) {
        return make_error(ErrorCode::kInvalidArgument,
                          "[sample] dry_breakers: sequence {}: found {}, expected a token id", i + 1, id);
      }
    }
    total += sequence.size();
    if (total > kBreakerIdsTotal) {
      return make_error(ErrorCode::kInvalidArgument, "[sample] dry_breakers: more than {} ids in all",
                        kBreakerIdsTotal);
    }
  }
  return {};
}

Status check_order(const SamplingParams& p) {
  std::array<bool, kSamplerStages> seen{};
  for (size_t i = 0; i < p.samplers.size(); ++i) {
    const auto at = static_cast<size_t>(p.samplers[i]);
    if (at >= seen.size()) {
      return make_error(ErrorCode::kInvalidArgument, "[sample] samplers: found {}, expected 0 to {}", at,
                        kSamplerStages - 1);
    }
    if (seen[at]) {
      return make_error(ErrorCode::kInvalidArgument, "[sample] samplers: found '{}' twice, expected each at most once",
                        sampler_name(p.samplers[i]));
    }
    seen[at] = true;
    if (p.samplers[i] == SamplerStage::kAdaptiveP && i + 1 < p.samplers.size()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "[sample] samplers: found '{}' after 'adaptive_p', expected nothing after it",
                        sampler_name(p.samplers[i + 1]));
    }
  }
  return {};
}

// Mirostat takes their place: what somebody turned on must not be dropped in silence. top_k, top_p and min_p are on by
// default, and that they do not count is what it says of itself.
Status check_mirostat(const SamplingParams& p) {
  if (p.mirostat == 0) return {};
  const auto excluded = [&](const char* name) {
    return make_error(ErrorCode::kInvalidArgument, "[sample] mirostat: found {} together with {}, expected one of them",
                      p.mirostat, name);
  };
  if (p.top_n_sigma > 0.0f) return excluded("top_n_sigma");
  if (p.typical_p < 1.0f) return excluded("typical_p");
  if (p.xtc_probability > 0.0f) return excluded("xtc_probability");
  if (p.adaptive_target >= 0.0f) return excluded("adaptive_target");
  if (p.samplers != default_samplers()) return excluded("an order of samplers");
  return {};
}

}  // namespace

Status check_sampling(const SamplingParams& p) {
  // A repeat penalty below 0.01 or above 100 would drown every logit.
  const Rule rules[] = {
      {"repeat_penalty", p.repeat_penalty, 0.01f, 100},
      {"repeat_last_n", static_cast<double>(p.repeat_last_n), -1, kManyIds},
      {"frequency_penalty", p.frequency_penalty, -100, 100},
      {"presence_penalty", p.presence_penalty, -100, 100},
      {"dry_multiplier", p.dry_multiplier, 0, 100},
      {"dry_base", p.dry_base, 1, 100},
      {"dry_allowed_length", static_cast<double>(p.dry_allowed_length), 0, kManyIds},
      {"dry_penalty_last_n", static_cast<double>(p.dry_penalty_last_n), -1, kManyIds},
      {"top_n_sigma", p.top_n_sigma, -1, 1000},
      {"top_k", static_cast<double>(p.top_k), 0, kManyIds},
      {"typical_p", p.typical_p, 0, 1, true},
      {"top_p", p.top_p, 0, 1, true},
      {"min_p", p.min_p, 0, 1},
      {"xtc_probability", p.xtc_probability, 0, 1},
      {"xtc_threshold", p.xtc_threshold, 0, 1},
      {"min_keep", static_cast<double>(p.min_keep), 0, kManyIds},
      {"temperature", p.temperature, 0, 100},
      {"dynatemp_range", p.dynatemp_range, 0, 100},
      {"dynatemp_exponent", p.dynatemp_exponent, 0, 100},
      {"adaptive_target", p.adaptive_target, -1, 1},
      {"adaptive_decay", p.adaptive_decay, 0, 0.99f},
      {"mirostat", static_cast<double>(p.mirostat), 0, 2},
      {"mirostat_tau", p.mirostat_tau, 0, 100, true},
      {"mirostat_eta", p.mirostat_eta, 0, 1},
  };
  for (const Rule& r : rules) {
    if (r.value <= r.hi && (r.above_lo ? r.value > r.lo : r.value >= r.lo)) continue;  // NaN fails both
    return make_error(ErrorCode::kInvalidArgument, "[sample] {}: found {}, expected {}{} to {}", r.name,
                      number_text(r.value), r.above_lo ? "more than " : "", number_text(r.lo), number_text(r.hi));
  }
  for (const auto& [id, bias] : p.logit_bias) {
    if (id < 0 || std::isnan(bias) || bias == INFINITY) {
      return make_error(ErrorCode::kInvalidArgument,
                        "[sample] logit_bias of token {}: found {}, expected a token id and a number or -infinity", id,
                        bias);
    }
  }
  MINFER_TRY(check_breakers(p));
  MINFER_TRY(check_order(p));
  return check_mirostat(p);
}

}  // namespace minfer
