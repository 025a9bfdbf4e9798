// exp, tanh and the activations on vectors of sixteen lanes: the steps of base/fmath.h, lane by lane.
// Included after a vec-inl.h; everything is internal to the including file.
#pragma once

namespace minfer::cpu {
namespace {

inline F exp(F x) {
  const F n = rint(mul(x, set1(1.44269504f)));
  F r = fma(n, set1(-0.693145752f), x);
  r = fma(n, set1(-1.42860677e-6f), r);
  F p = set1(1.0f / 720);
  p = fma(p, r, set1(1.0f / 120));
  p = fma(p, r, set1(1.0f / 24));
  p = fma(p, r, set1(1.0f / 6));
  p = fma(p, r, set1(0.5f));
  p = fma(p, r, set1(1.0f));
  p = fma(p, r, set1(1.0f));
  F y = scale_pow2(p, n);
  y = select(gt(x, set1(88.7228317f)), set1(__builtin_inff()), y);
  y = select(lt(x, set1(-103.972084f)), zero(), y);
  return select(unordered(x), x, y);
}

inline F tanh(F x) {
  const F a = abs(x);
  const F t = exp(mul(set1(-2.0f), a));
  const F r = div(sub(set1(1.0f), t), add(set1(1.0f), t));
  return select(lt(a, set1(0x1p-12f)), x, copysign(r, x));
}

inline F softcap(F x, F c) { return mul(c, tanh(div(x, c))); }

// Activations, in the order of graph Act; gelu_erf stands in elementwise-inl.h.
struct Silu {
  static F of(F x) { return div(x, add(set1(1.0f), exp(neg(x)))); }
};
struct GeluTanh {
  static F of(F x) {
    const F u = mul(set1(0.7978845608f), fma(mul(mul(set1(0.044715f), x), x), x, x));
    return mul(mul(set1(0.5f), x), add(set1(1.0f), tanh(u)));
  }
};
struct GeluQuick {
  static F of(F x) { return div(x, add(set1(1.0f), exp(mul(set1(-1.702f), x)))); }
};
struct Relu {
  static F of(F x) { return select(gt(x, zero()), x, select(unordered(x), x, zero())); }
};
struct Relu2 {
  static F of(F x) {
    const F r = Relu::of(x);
    return mul(r, r);
  }
};
struct Tanh {
  static F of(F x) { return tanh(x); }
};
struct Sigmoid {
  static F of(F x) { return div(set1(1.0f), add(set1(1.0f), exp(neg(x)))); }
};

}  // namespace
}  // namespace minfer::cpu
