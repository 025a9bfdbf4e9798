// RMSNorm and RoPE bodies. Included after a vec-inl.h; everything is internal to the including file.
#pragma once

#include "backend/cpu/kernels.h"

namespace minfer::cpu {
namespace {

void rms_norm_row(const float* x, const float* w, float eps, float* y, int64_t d) {
  const double mean = sum_squares(x, d) / static_cast<double>(d);
  const F r = set1(static_cast<float>(1.0 / sqrt_f64(mean + static_cast<double>(eps))));
  int64_t i = 0;
  for (; i + 16 <= d; i += 16) {
    const F v = mul(load(x + i), r);
    store(y + i, w != nullptr ? mul(v, load(w + i)) : v);
  }
  const int left = static_cast<int>(d - i);
  if (left > 0) {
    const F v = mul(load_n(x + i, left), r);
    store_n(y + i, w != nullptr ? mul(v, load_n(w + i, left)) : v, left);
  }
}

// a' = fma(a, cos, -(b * sin)), b' = fma(a, sin, b * cos)
void rope_neox_head(const float* x, const float* cos, const float* sin, float* y, int64_t half) {
  for (int64_t i = 0; i < half; i += 16) {
    const int n = half - i < 16 ? static_cast<int>(half - i) : 16;
    const F a = load_n(x + i, n), b = load_n(x + half + i, n), c = load_n(cos + i, n), s = load_n(sin + i, n);
    store_n(y + i, fma(a, c, neg(mul(b, s))), n);
    store_n(y + half + i, fma(a, s, mul(b, c)), n);
  }
}

// With t1 = cos sin, t2 = -sin cos in turn: fma(a, t1, b * t2) is a' in even lanes and b' in odd ones; a product's sign
// does not touch its rounding.
void rope_interleaved_head(const float* x, const float* t1, const float* t2, float* y, int64_t half) {
  for (int64_t i = 0; i < 2 * half; i += 16) {
    const int n = 2 * half - i < 16 ? static_cast<int>(2 * half - i) : 16;
    const F v = load_n(x + i, n);
    store_n(y + i, fma(dup_even(v), load_n(t1 + i, n), mul(dup_odd(v), load_n(t2 + i, n))), n);
  }
}

constexpr RowKernels kRow = {rms_norm_row, rope_neox_head, rope_interleaved_head};

}  // namespace
}  // namespace minfer::cpu
