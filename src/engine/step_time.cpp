// Moving averages and a two-parameter fit.
#include "engine/step_time.h"

#include <algorithm>
#include <cmath>

namespace minfer {
namespace {

constexpr double kForget = 0.9;      // of the fit, per step with prompt tokens: some ten steps count
constexpr double kAverage = 0.25;    // weight of a new decode time
constexpr double kOutlier = 4;       // a step that took longer than so many times the expected counts as that
constexpr double kDepthUnit = 1024;  // positions, so that both columns of the fit are of one size

}  // namespace

double StepTime::decode_ms(int32_t rows) const {
  if (rows <= 0) return 0;
  rows = std::min(rows, kRows);
  int32_t lo = rows, hi = rows;
  while (lo > 0 && decode_[static_cast<size_t>(lo)] == 0) --lo;
  while (hi <= kRows && decode_[static_cast<size_t>(hi)] == 0) ++hi;
  const double at_lo = lo > 0 ? decode_[static_cast<size_t>(lo)] : 0;
  const double at_hi = hi <= kRows ? decode_[static_cast<size_t>(hi)] : 0;
  if (lo <= 0) return at_hi;
  if (hi > kRows) return at_lo;
  if (lo == hi) return at_lo;
  return at_lo + (at_hi - at_lo) * (rows - lo) / (hi - lo);
}

double StepTime::prefill_ms(int32_t tokens, int64_t depth) const {
  return per_token_ * tokens + per_depth_ * static_cast<double>(depth) / kDepthUnit;
}

void StepTime::observe(const StepShape& s, double ms) {
  if (!(ms > 0)) return;
  const double expected = decode_ms(s.decode_rows) + prefill_ms(s.prefill_tokens, s.prefill_depth);
  if (expected > 0) ms = std::min(ms, kOutlier * expected);
  if (s.prefill_tokens == 0) {
    double& average = decode_[static_cast<size_t>(std::clamp(s.decode_rows, 1, kRows))];
    average = average == 0 ? ms : average + kAverage * (ms - average);
    // Fewer rows take no longer. A first step made its plan too; without this nothing would correct its time when it
    // made that many rows look too dear to be computed again.
    for (size_t i = 1; i < static_cast<size_t>(&average - decode_.data()); ++i)
      decode_[i] = std::min(decode_[i], average);
    return;
  }
  const double y = std::max(0.0, ms - decode_ms(s.decode_rows));
  const double x1 = s.prefill_tokens, x2 = static_cast<double>(s.prefill_depth) / kDepthUnit;
  // Rows weighted by 1 / tokens, so that short and long parts count alike per token.
  const double w = 1 / x1;
  s11_ = kForget * s11_ + w * x1 * x1;
  s12_ = kForget * s12_ + w * x1 * x2;
  s22_ = kForget * s22_ + w * x2 * x2;
  b1_ = kForget * b1_ + w * x1 * y;
  b2_ = kForget * b2_ + w * x2 * y;
  const double det = s11_ * s22_ - s12_ * s12_;
  if (det > 1e-6 * s11_ * s22_ && s22_ > 0) {
    per_depth_ = std::max(0.0, (s11_ * b2_ - s12_ * b1_) / det);
  }
  per_token_ = (b1_ - per_depth_ * s12_) / s11_;
  if (per_token_ <= 0) {  // all of it explained by depth: keep both positive
    per_depth_ = 0;
    per_token_ = b1_ / s11_;
  }
}

int32_t StepTime::prefill_budget(int32_t decode_rows, int32_t position, double ms, int32_t least, int32_t most) const {
  if (per_token_ <= 0) return least;
  const double left = ms - decode_ms(decode_rows);
  // tokens * per_token + per_depth / unit * (tokens * position + tokens^2 / 2) <= left
  const double a = per_depth_ / kDepthUnit / 2, b = per_token_ + per_depth_ / kDepthUnit * position;
  const double n = left <= 0 ? 0 : a <= 1e-12 ? left / b : (std::sqrt(b * b + 4 * a * left) - b) / (2 * a);
  return std::clamp(static_cast<int32_t>(std::min(n, 1e9)), least, std::max(least, most));
}

}  // namespace minfer
