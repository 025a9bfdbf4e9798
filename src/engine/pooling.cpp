#include "engine/pooling.h"

#include <cmath>

namespace minfer {

bool Pooled::wants(int32_t position, int32_t n) const {
  switch (pooling_) {
    case Pooling::kLast: return position == n - 1;
    case Pooling::kCls: return position == 0;
    case Pooling::kMean:
    case Pooling::kNone: return true;
  }
  return true;
}

void Pooled::add(std::span<const float> hidden) {
  ++added_;
  if (pooling_ != Pooling::kMean) {
    rows_.insert(rows_.end(), hidden.begin(), hidden.end());
    return;
  }
  sum_.resize(n_embd_, 0.0);
  for (size_t i = 0; i < n_embd_; ++i) sum_[i] += static_cast<double>(hidden[i]);
}

std::vector<float> Pooled::take() {
  if (pooling_ == Pooling::kMean) {
    for (double s : sum_) rows_.push_back(static_cast<float>(s / added_));
  }
  for (size_t at = 0; normalize_ && at < rows_.size(); at += n_embd_)
    minfer::normalize(std::span<float>(rows_).subspan(at, n_embd_));
  return std::move(rows_);
}

void normalize(std::span<float> x) {
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  if (sum == 0) return;
  const double length = std::sqrt(sum);
  for (float& v : x) v = static_cast<float>(static_cast<double>(v) / length);
}

}  // namespace minfer
