// Sums and logarithms are f64; comparisons that decide about a candidate see f32 logits and probabilities.
#include "sample/filters.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/fmath.h"

namespace minfer {

void keep_top_n_sigma(Candidates& c, float n) {
  if (n <= 0.0f || c.size() < 2) return;
  double sum = 0, squares = 0;
  for (const Candidate& x : c.items()) sum += static_cast<double>(x.logit);
  const double mean = sum / static_cast<double>(c.size());
  for (const Candidate& x : c.items()) {
    const double d = static_cast<double>(x.logit) - mean;
    squares += d * d;
  }
  const double sigma = std::sqrt(squares / static_cast<double>(c.size()));
  const double floor = static_cast<double>(c.largest()) - static_cast<double>(n) * sigma;
  c.drop_if([&](const Candidate& x) { return static_cast<double>(x.logit) < floor; });
}

void keep_typical(Candidates& c, float p, size_t min_keep) {
  if (p >= 1.0f || c.size() < 2) return;
  c.softmax();
  // An id's distance is that of its surprise from the entropy; ties to the larger logit, then to the lower id.
  struct Item {
    double distance;
    size_t at;
  };
  const auto items = c.items();
  std::vector<Item> heap;
  double entropy = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const double q = static_cast<double>(items[i].p), surprise = -log_f64(q);
    if (q > 0) entropy += q * surprise;
    heap.push_back({surprise, i});
  }
  for (Item& x : heap) x.distance = std::fabs(x.distance - entropy);
  const auto later = [&](const Item& a, const Item& b) {
    return a.distance != b.distance ? a.distance > b.distance : before(items[b.at], items[a.at]);
  };
  std::make_heap(heap.begin(), heap.end(), later);
  std::vector<int32_t> kept;
  double sum = 0;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const Candidate& x = items[heap.back().at];
    heap.pop_back();
    kept.push_back(x.id);
    sum += static_cast<double>(x.p);
    if (sum >= static_cast<double>(p) && kept.size() >= min_keep) break;
  }
  std::sort(kept.begin(), kept.end());
  c.drop_if([&](const Candidate& x) { return !std::binary_search(kept.begin(), kept.end(), x.id); });
}

void keep_top_p(Candidates& c, float p, size_t min_keep) {
  if (p >= 1.0f || c.size() < 2) return;
  c.softmax();
  double sum = 0;
  size_t i = 0;
  // The mass is nearly always in the first few hundred.
  for (size_t n = 256;; n *= 16) {
    const auto head = c.head(n);
    for (; i < head.size(); ++i) {
      sum += static_cast<double>(head[i].p);
      if (sum >= static_cast<double>(p) && i + 1 >= min_keep) return c.keep_head(i + 1);
    }
    if (head.size() == c.size()) return;
  }
}

void keep_min_p(Candidates& c, float p, size_t min_keep) {
  if (p <= 0.0f || c.size() < 2) return;
  const double floor = static_cast<double>(c.largest()) + log_f64(static_cast<double>(p));
  const auto low = [&](const Candidate& x) { return static_cast<double>(x.logit) < floor; };
  const auto items = c.items();
  const auto n = static_cast<size_t>(std::count_if(items.begin(), items.end(), std::not_fn(low)));
  if (n >= min_keep) {
    c.drop_if(low);
  } else {
    c.keep_head(min_keep);
  }
}

void drop_top_choices(Candidates& c, float threshold, size_t min_keep) {
  if (c.size() < 2) return;
  c.softmax();
  const auto items = c.items();
  const auto n = static_cast<size_t>(
      std::count_if(items.begin(), items.end(), [&](const Candidate& x) { return x.p >= threshold; }));
  if (n < 2 || c.size() - (n - 1) < min_keep) return;
  const Candidate last = c.head(n).back();  // probabilities rise with the logits: the n largest are these
  c.drop_if([&](const Candidate& x) { return before(x, last); });
}

}  // namespace minfer
