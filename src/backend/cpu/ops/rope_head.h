// Rotating single heads, with the token's angles brought into the form the micro-kernels want.
// Threads: one RopeHead per worker.
#pragma once

#include <cstring>

#include "backend/cpu/ops/op_lists.h"

namespace minfer::cpu {

class RopeHead {
 public:
  RopeHead(const RowKernels& kernels, RopeStyle style, int64_t n_rot, int64_t head_dim)
      : kernels_(kernels), style_(style), half_(n_rot / 2), head_dim_(head_dim) {}

  // Takes the angles of a token: table holds cos [half], then sin [half]. Requires: n_rot <= kMaxHeadDim.
  void set_token(const float* table) {
    if (style_ == RopeStyle::kNeox) {
      cos_ = table;
      return;
    }
    for (int64_t i = 0; i < half_; ++i) {
      const float c = table[i], s = table[half_ + i];
      t1_[2 * i] = c, t1_[2 * i + 1] = s;
      t2_[2 * i] = -s, t2_[2 * i + 1] = c;
    }
  }

  // y may be x.
  void rotate(const float* x,  // [head_dim]
              float* y) const {
    if (style_ == RopeStyle::kNeox) {
      kernels_.rope_neox(x, cos_, cos_ + half_, y, half_);
    } else {
      kernels_.rope_interleaved(x, t1_, t2_, y, half_);
    }
    const int64_t rest = head_dim_ - 2 * half_;
    if (x != y && rest > 0) std::memcpy(y + 2 * half_, x + 2 * half_, static_cast<size_t>(rest) * sizeof(float));
  }

 private:
  const RowKernels& kernels_;
  RopeStyle style_;
  int64_t half_, head_dim_;
  const float* cos_ = nullptr;
  float t1_[kMaxHeadDim], t2_[kMaxHeadDim];  // interleaved style: see RowKernels::rope_interleaved
};

}  // namespace minfer::cpu
