// erf on sixteen lanes: the steps of erf_f64 in base/fmath.h, lane by lane, without branches. One loop over doubles
// that the compiler turns into vectors of the folder's width: an f64 vector type would serve this function alone.
// Included after a vec-inl.h; everything is internal to the including file.
#pragma once

namespace minfer::cpu {
namespace {

template <int N>
inline __attribute__((always_inline)) double horner(double x, const double (&c)[N]) {
  double p = c[N - 1];
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) p = __builtin_fma(p, x, c[i]);
  return p;
}

// Without a branch, so that both sides are computed for all lanes.
inline __attribute__((always_inline)) double pick(bool first, double a, double b) {
  const uint64_t mask = first ? ~uint64_t{0} : 0;
  return __builtin_bit_cast(double,
                            (__builtin_bit_cast(uint64_t, a) & mask) | (__builtin_bit_cast(uint64_t, b) & ~mask));
}

inline __attribute__((always_inline)) double erf_lane(double x) {
  constexpr double kP[] = {1.1283791670946768,    -0.3761263888963531,     0.11283791308604582,
                           -0.026866133235095593, 0.005223783477189248,    -0.0008542637997087229,
                           0.0001195656256820733, -1.3909340021874599e-05, 1.058938064107502e-06};
  constexpr double kQ[] = {0.2214295402299318,     0.1618935680670416,     0.03856057042290149,
                           0.005588815760719682,   0.00019713922355676813, -8.078927465097793e-05,
                           -7.340777615211769e-06, 1.9728133257834122e-06, 1.641070265230732e-07,
                           -6.31910957437951e-08,  -1.2274395239078061e-09};
  constexpr double kE[] = {
      1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  const double a = __builtin_fabs(x);
  const double small = x * horner(x * x, kP);
  const double b = pick(a < 6.0, a, 6.0);
  const double u = 9.6 / (2.0 + b) - 2.2;
  // exp(y) for y in -36..0: neither end of its range is near, and 2^n is one normal factor.
  constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer, which then stands in the low bits
  const double y = -(b * b), shifted = y * 0x1.71547652b82fep+0 + kRound, n = shifted - kRound;
  double r = __builtin_fma(n, -0x1.62e42feep-1, y);
  r = __builtin_fma(n, -0x1.a39ef35793c76p-33, r);
  const double pow2 = __builtin_bit_cast(double, (__builtin_bit_cast(uint64_t, shifted) + 1023) << 52);
  const double big = __builtin_copysign(1.0 - horner(r, kE) * pow2 * horner(u, kQ), x);
  return pick(x == x, pick(a < 1.0, small, big), x);
}

inline F erf(F x) {
  float in[16], out[16];
  store(in, x);
  for (int j = 0; j < 16; ++j) out[j] = static_cast<float>(erf_lane(static_cast<double>(in[j])));
  return load(out);
}

}  // namespace
}  // namespace minfer::cpu
