// What the two reference matmuls share: quantized activations and one decoded weight row per worker, in scratch.
#pragma once

#include "backend/kernel.h"
#include "backend/ref/dot.h"

namespace minfer::ref {

// Why a weight cannot be read by the reference kernels: packed, or a type without a decoder.
Refusal plain_weight_refusal(const TensorView& w);

// Layout of the scratch: Q8aBlock [n_rows][k / 32] (quantized weights only), then per worker one row: CodeBlock [k /
// 32] or float [k], each worker's part rounded up to 64 bytes.
size_t matmul_scratch_bytes(DType weight, int64_t k, int64_t n_rows, int n_threads);

class MatMulScratch {
 public:
  // Requires: scratch of matmul_scratch_bytes.
  MatMulScratch(std::byte* scratch, DType weight, int64_t k, int64_t n_rows, int worker);

  // Quantizes all rows of x if the weights are quantized, split over the workers; ends with a barrier in that case.
  void quantize(const TensorView& x,  // f32, n_rows rows of k
                Worker& worker);
  void load_row(const void* row);   // k weights
  float dot(int64_t r,              // row of x
            const float* x) const;  // [k], the same row, for float weights

 private:
  DType weight_;
  int64_t k_, n_rows_;
  bool quantized_;
  CodeStep step_;
  Q8aBlock* acts_;    // [n_rows][k / 32]
  CodeBlock* codes_;  // [k / 32]
  float* floats_;     // [k]
};

}  // namespace minfer::ref
