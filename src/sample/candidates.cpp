// Selection without sorting everything: a scan with a rising floor, then a sort of the few that are left.
#include "sample/candidates.h"

#include <algorithm>
#include <cmath>

#include "base/fmath.h"

namespace minfer {
namespace {

// Leaves the n largest in `best`, sorted. `next` gives the candidates in the order of their ids, so that a later one
// that equals the floor loses the tie. A full buffer is cut to n: each cut pays for the scan of as many again.
class Selection {
 public:
  Selection(std::vector<Candidate>& best, size_t n) : best_(best), n_(n), cap_(n + std::max<size_t>(n, 256)) {
    best_.clear();
  }
  bool wants(float logit) const { return logit > floor_; }
  void add(const Candidate& c) {
    best_.push_back(c);
    if (best_.size() < cap_) return;
    cut();
    floor_ = best_.back().logit;
  }
  void finish() {
    if (best_.size() > n_) cut();
    std::sort(best_.begin(), best_.end(), before);
  }

 private:
  void cut() {
    std::nth_element(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(n_ - 1), best_.end(), before);
    best_.resize(n_);
  }
  std::vector<Candidate>& best_;
  size_t n_, cap_;
  float floor_ = -INFINITY;
};

}  // namespace

Candidates::Candidates(std::vector<Candidate> items) : items_(std::move(items)), sorted_(items_.size() < 2) {}

void Candidates::assign(std::span<const float> row, size_t k, TokenMask mask) {
  items_.clear();
  if (k > 0 && k < row.size() / 2) {
    Selection selection(items_, k);
    for_each_allowed(mask, row.size(), [&](size_t i) {
      if (selection.wants(row[i])) selection.add({static_cast<int32_t>(i), row[i], 0});
    });
    selection.finish();
    sorted_ = true;
    return;
  }
  for_each_allowed(mask, row.size(), [&](size_t i) {
    if (row[i] != -INFINITY) items_.push_back({static_cast<int32_t>(i), row[i], 0});
  });
  sorted_ = items_.size() < 2;
  if (k > 0) keep_head(k);
}

void Candidates::assign_one(int32_t id, float logit) {
  items_.assign(1, {id, logit, 1});
  sorted_ = true;
}

float Candidates::largest() const {
  float largest = items_[0].logit;
  if (sorted_) return largest;
  for (const Candidate& x : items_) largest = x.logit > largest ? x.logit : largest;
  return largest;
}

double Candidates::softmax() {
  if (items_.empty()) return 0;
  const float top = largest();
  double sum = 0;
  for (Candidate& x : items_) {
    x.p = exp_f32(x.logit - top);
    sum += static_cast<double>(x.p);
  }
  double sum_p = 0;
  for (Candidate& x : items_) {
    x.p = static_cast<float>(static_cast<double>(x.p) / sum);
    sum_p += static_cast<double>(x.p);
  }
  return sum_p;
}

std::span<const Candidate> Candidates::head(size_t n) {
  if (n >= items_.size() / 2) sort();
  n = std::min(n, items_.size());
  if (sorted_) return std::span<const Candidate>(items_).first(n);
  if (n == 0) return {};
  Selection selection(head_, n);
  for (const Candidate& x : items_) {
    if (selection.wants(x.logit)) selection.add(x);
  }
  selection.finish();
  return head_;
}

void Candidates::sort() {
  if (!sorted_) resort();
}

void Candidates::resort() {
  std::sort(items_.begin(), items_.end(), before);
  sorted_ = true;
}

void Candidates::keep_head(size_t n) {
  if (n >= items_.size()) return sort();
  head(n);
  if (!sorted_) {
    items_.swap(head_);
    sorted_ = true;
  }
  items_.resize(n);
}

}  // namespace minfer
