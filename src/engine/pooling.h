// Pooled: hidden states on their way to an embedding. Sums are f64 in order of position, so that the parts a prompt is
// computed in change no bit.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "minfer/request.h"

namespace minfer {

class Pooled {
 public:
  Pooled(Pooling pooling, bool normalize, int32_t n_embd)
      : pooling_(pooling), normalize_(normalize), n_embd_(static_cast<size_t>(n_embd)) {}

  // Whether the hidden state at `position` of `n` is wanted.
  bool wants(int32_t position, int32_t n) const;
  // The next one that is wanted, in order of position: [n_embd].
  void add(std::span<const float> hidden);
  int32_t added() const { return added_; }
  std::vector<float> take();  // Requires: all were added

 private:
  Pooling pooling_;
  bool normalize_;
  size_t n_embd_;
  int32_t added_ = 0;
  std::vector<double> sum_;
  std::vector<float> rows_;
};

// Scales to length 1: squares summed in f64 in order, one division per value. Zeros stay.
void normalize(std::span<float> x);

}  // namespace minfer
