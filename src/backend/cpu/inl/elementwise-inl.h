// Element-wise bodies. Included after a vec-inl.h, math-inl.h and an erf; everything is internal to the including file.
// A tail shorter than a vector is loaded with zeros beyond its end and stored by count.
#pragma once

#include "backend/cpu/kernels.h"

namespace minfer::cpu {
namespace {

template <typename Fn>
inline void map1(const float* x, float* y, int64_t n, Fn fn) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, fn(load(x + i)));
  const int left = static_cast<int>(n - i);
  if (left > 0) store_n(y + i, fn(load_n(x + i, left)), left);
}

template <typename Fn>
inline void map2(const float* a, const float* b, float* y, int64_t n, Fn fn) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, fn(load(a + i), load(b + i)));
  const int left = static_cast<int>(n - i);
  if (left > 0) store_n(y + i, fn(load_n(a + i, left), load_n(b + i, left)), left);
}

void add_n(const float* a, const float* b, float* y, int64_t n) {
  map2(a, b, y, n, [](F p, F q) { return add(p, q); });
}
void mul_n(const float* a, const float* b, float* y, int64_t n) {
  map2(a, b, y, n, [](F p, F q) { return mul(p, q); });
}
void scale_n(const float* x, float s, float* y, int64_t n) {
  const F c = set1(s);
  map1(x, y, n, [=](F p) { return mul(p, c); });
}
void scale_add_n(const float* x, float s, float* y, int64_t n) {
  const F c = set1(s);
  map2(x, y, y, n, [=](F p, F q) { return fma(p, c, q); });
}
void softcap_n(const float* x, float c, float* y, int64_t n) {
  const F cap = set1(c);
  map1(x, y, n, [=](F p) { return softcap(p, cap); });
}

struct GeluErf {
  static F of(F x) { return mul(mul(set1(0.5f), x), add(set1(1.0f), erf(mul(x, set1(0.70710678f))))); }
};

template <typename A>
void unary_n(const float* x, float* y, int64_t n) {
  map1(x, y, n, [](F p) { return A::of(p); });
}
template <typename A>
void gated_n(const float* gate, const float* up, float* y, int64_t n) {
  map2(gate, up, y, n, [](F g, F u) { return mul(A::of(g), u); });
}

constexpr ElementwiseKernels kElementwise = {
    add_n,
    mul_n,
    scale_n,
    scale_add_n,
    {unary_n<Silu>, unary_n<GeluTanh>, unary_n<GeluErf>, unary_n<GeluQuick>, unary_n<Relu>, unary_n<Relu2>,
     unary_n<Tanh>, unary_n<Sigmoid>},
    {gated_n<Silu>, gated_n<GeluTanh>, gated_n<GeluErf>, gated_n<GeluQuick>, gated_n<Relu>, gated_n<Relu2>,
     gated_n<Tanh>, gated_n<Sigmoid>},
    softcap_n,
};

}  // namespace
}  // namespace minfer::cpu
