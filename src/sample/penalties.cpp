// The ids of the window are sorted and counted: its length, not the vocabulary's, decides the cost.
#include "sample/penalties.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace minfer {
namespace {

// What would leave f32's range stays at its end; -infinity, a forbidden id, stays as it is, and so does what is no
// number: the draw reports that.
float penalised(float logit, size_t count, const SamplingParams& p) {
  if (!std::isfinite(logit)) return logit;
  logit = logit > 0 ? logit / p.repeat_penalty : logit * p.repeat_penalty;
  logit -= static_cast<float>(count) * p.frequency_penalty + p.presence_penalty;
  constexpr float kMax = std::numeric_limits<float>::max();
  return logit > kMax ? kMax : (logit < -kMax ? -kMax : logit);
}

}  // namespace

std::span<const int32_t> last_ids(std::span<const int32_t> history, int32_t n) {
  return n < 0 || static_cast<size_t>(n) >= history.size() ? history : history.last(static_cast<size_t>(n));
}

bool Penalties::active(const SamplingParams& p) {
  return p.repeat_last_n != 0 &&
         (p.repeat_penalty != 1.0f || p.frequency_penalty != 0.0f || p.presence_penalty != 0.0f);
}

void Penalties::apply(std::span<float> row, std::span<const int32_t> history, const SamplingParams& p) {
  const auto window = last_ids(history, p.repeat_last_n);
  window_.assign(window.begin(), window.end());
  std::sort(window_.begin(), window_.end());
  for (size_t i = 0, end; i < window_.size(); i = end) {
    const int32_t id = window_[i];
    for (end = i + 1; end < window_.size() && window_[end] == id;) ++end;
    if (id < 0 || static_cast<size_t>(id) >= row.size()) continue;
    row[static_cast<size_t>(id)] = penalised(row[static_cast<size_t>(id)], end - i, p);
  }
}

void Penalties::apply(Candidates& c, std::span<const int32_t> history, const SamplingParams& p) {
  const auto window = last_ids(history, p.repeat_last_n);
  window_.assign(window.begin(), window.end());
  std::sort(window_.begin(), window_.end());
  for (Candidate& x : c.items()) {
    const auto [lo, hi] = std::equal_range(window_.begin(), window_.end(), x.id);
    if (lo != hi) x.logit = penalised(x.logit, static_cast<size_t>(hi - lo), p);
  }
  if (c.sorted()) c.resort();
}

}  // namespace minfer
