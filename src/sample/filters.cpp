// The stages between the logits and the draw.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/fmath.h"
#include "sample/sampler.h"

namespace minfer {

void apply_penalties(std::span<float> logits, std::span<const int32_t> history, const SamplingParams& p) {
  if (p.repeat_last_n == 0 || (p.repeat_penalty == 1.0f && p.frequency_penalty == 0.0f && p.presence_penalty == 0.0f))
    return;
  if (p.repeat_last_n > 0 && history.size() > static_cast<size_t>(p.repeat_last_n))
    history = history.last(static_cast<size_t>(p.repeat_last_n));
  std::unordered_map<int32_t, int32_t> counts;
  for (int32_t id : history) {
    if (id >= 0 && static_cast<size_t>(id) < logits.size()) ++counts[id];
  }
  for (const auto& [id, count] : counts) {  // ids are independent: the map's order does not matter
    float& l = logits[static_cast<size_t>(id)];
    l = l > 0 ? l / p.repeat_penalty : l * p.repeat_penalty;
    l -= static_cast<float>(count) * p.frequency_penalty + p.presence_penalty;
  }
}

void softmax(std::vector<Candidate>& c) {
  if (c.empty()) return;
  float sum = 0;
  for (Candidate& x : c) {
    x.p = exp_f32(x.logit - c[0].logit);
    sum += x.p;
  }
  for (Candidate& x : c) x.p /= sum;
}

void keep_top_p(std::vector<Candidate>& c, float p) {
  if (p >= 1.0f) return;
  softmax(c);
  float sum = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    sum += c[i].p;
    if (sum >= p) {
      c.resize(i + 1);
      return;
    }
  }
}

void keep_min_p(std::vector<Candidate>& c, float p) {
  if (p <= 0.0f || c.empty()) return;
  softmax(c);
  const float floor = p * c[0].p;
  const auto end = std::find_if(c.begin() + 1, c.end(), [&](const Candidate& x) { return x.p < floor; });
  c.erase(end, c.end());
}

void keep_typical(std::vector<Candidate>& c, float p) {
  if (p >= 1.0f || c.empty()) return;
  softmax(c);
  double entropy = 0;
  for (const Candidate& x : c) {
    if (x.p > 0) entropy -= static_cast<double>(x.p) * log_f64(x.p);
  }
  // Distance of each candidate's surprise from the entropy; the most typical first, until they hold p of the mass.
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < c.size(); ++i) {
    const double surprise = c[i].p > 0 ? -log_f64(c[i].p) : INFINITY;
    order.emplace_back(std::fabs(surprise - entropy), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<bool> keep(c.size(), false);
  double sum = 0;
  for (const auto& [distance, i] : order) {
    keep[i] = true;
    sum += c[i].p;
    if (sum >= p) break;
  }
  size_t n = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    if (keep[i]) c[n++] = c[i];
  }
  c.resize(n);
}

int32_t draw(const std::vector<Candidate>& c, double uniform) {
  double sum = 0;
  for (const Candidate& x : c) {
    sum += static_cast<double>(x.p);
    if (uniform < sum) return x.id;
  }
  return c.back().id;  // rounding left the sum just below 1
}

}  // namespace minfer
