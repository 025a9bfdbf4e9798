// RMSNorm, softmax and RoPE bodies. Included after a vec-inl.h and math-inl.h; everything is internal to the including
// file.
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

// p = exp(x - max) / sum, the maximum by vectors (NaN wins), the sum in order.
void softmax_row(const float* x, float* p, int64_t n) {
  F top = set1(-__builtin_inff());
  bool nan = false;
  for (int64_t i = 0; i < n; i += 16) {
    const int left = n - i < 16 ? static_cast<int>(n - i) : 16;
    const F v = select(lanes(0, left), load_n(x + i, left), set1(-__builtin_inff()));
    nan = nan || any(unordered(v));
    top = max(v, top);
  }
  const F m = set1(nan ? __builtin_nanf("") : max_lane(top));
  for (int64_t i = 0; i < n; i += 16) {
    const int left = n - i < 16 ? static_cast<int>(n - i) : 16;
    store_n(p + i, exp(sub(load_n(x + i, left), m)), left);
  }
  float sum = 0.0f;
  for (int64_t i = 0; i < n; ++i) sum += p[i];
  const F s = set1(sum);
  for (int64_t i = 0; i < n; i += 16) {
    const int left = n - i < 16 ? static_cast<int>(n - i) : 16;
    store_n(p + i, div(load_n(p + i, left), s), left);
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

constexpr RowKernels kRow = {rms_norm_row, rope_neox_head, rope_interleaved_head, softmax_row};

}  // namespace
}  // namespace minfer::cpu
