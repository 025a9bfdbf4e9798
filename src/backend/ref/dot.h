// Dot products of the matmuls: the order of every sum.
// Source: docs/numerics.md, "Matmul with block-quantized weights" and "Matmul with float weights".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "backend/ref/q8a.h"
#include "backend/ref/weight_codes.h"

namespace minfer::ref {

inline constexpr int64_t kSegment = 1024;  // values of k added into one accumulator; segments' sums are added in order

inline int32_t dot_16(const int8_t* a, const int8_t* b) {  // [16] each
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += a[i] * b[i];
  return sum;
}

// Sum over the k values of a quantized row.
inline float dot_codes(CodeStep step,
                       const CodeBlock* w,  // [k / 32]
                       const Q8aBlock* x,   // [k / 32]
                       int64_t k) {
  float y = 0.0f;
  for (int64_t start = 0; start < k; start += kSegment) {
    const int64_t end = std::min(k, start + kSegment);
    float acc = 0.0f;
    for (int64_t b = start / 32; b < end / 32; ++b) {
      const int32_t d0 = dot_16(w[b].q, x[b].q), d1 = dot_16(w[b].q + 16, x[b].q + 16);
      const bool halves = step == CodeStep::kHalves || step == CodeStep::kHalvesMin;
      const int32_t sum = halves ? w[b].sc0 * d0 + w[b].sc1 * d1 : d0 + d1;
      acc = std::fma(static_cast<float>(sum), w[b].a * x[b].d, acc);
      if (step == CodeStep::kScaleMin) acc = std::fma(w[b].b, x[b].s, acc);
      if (step == CodeStep::kHalvesMin) {
        const int32_t m = w[b].mn0 * x[b].h0 + w[b].mn1 * x[b].h1;
        acc = std::fma(-static_cast<float>(m), w[b].b * x[b].d, acc);
      }
    }
    y = start == 0 ? acc : y + acc;
  }
  return y;
}

// Sum over the k values of a float row.
inline float dot_floats(const float* w,  // [k]
                        const float* x,  // [k]
                        int64_t k) {
  float y = 0.0f;
  for (int64_t start = 0; start < k; start += kSegment) {
    const int64_t end = std::min(k, start + kSegment);
    float acc = 0.0f;
    for (int64_t i = start; i < end; ++i) acc = std::fma(w[i], x[i], acc);
    y = start == 0 ? acc : y + acc;
  }
  return y;
}

}  // namespace minfer::ref
