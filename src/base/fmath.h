// Scalar elementary functions with the same bits on every machine: own polynomials, explicit fma, no libm beyond
// the correctly rounded sqrt, fma and rint.
// The f32 functions are the ones docs/numerics.md names; vector kernels repeat these steps lane by lane. The f64
// functions make angle tables and inverse frequencies. Errors:  none; NaN in, NaN out. Every input is defined: no step
// overflows an integer or converts out of range. Threads: pure functions. Requires: round to nearest even, no
// contraction, no flush to zero. Source:  range reduction after Cody and Waite; Taylor coefficients 1/n! where a
// comment does not say otherwise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace minfer {

// 2^n exactly. Requires: -126 <= n <= 127 / -1022 <= n <= 1023.
inline float exp2_int_f32(int32_t n) { return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23); }
inline double exp2_int_f64(int64_t n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); }

// --- f32 ------------------------------------------------------------------------------------------------------

// Constants of exp_f32, for the vector kernels too.
inline constexpr float kExpMax = 88.7228317f;       // 0x42b17217, the last x whose exp is finite
inline constexpr float kExpMin = -103.972084f;      // 0xc2cff1b5, below it exp is less than half of the least denormal
inline constexpr float kExpLog2e = 1.44269504f;     // 0x3fb8aa3b
inline constexpr float kExpLn2Hi = 0.693145752f;    // 0x3f317200: 15 bits of ln 2, so that n * hi is exact
inline constexpr float kExpLn2Lo = 1.42860677e-6f;  // 0x35bfbe8e
inline constexpr float kExpC6 = 1.0f / 720, kExpC5 = 1.0f / 120, kExpC4 = 1.0f / 24, kExpC3 = 1.0f / 6, kExpC2 = 0.5f;

// e^x, within 2.5 ulp: two come from the first Taylor term left out, r^7/5040 <= 1.2e-7.
inline float exp_f32(float x) {
  if (x != x) return x + x;
  if (x > kExpMax) return std::numeric_limits<float>::infinity();
  if (x < kExpMin) return 0.0f;
  const float n = std::rint(x * kExpLog2e);  // -150..128
  float r = std::fma(n, -kExpLn2Hi, x);
  r = std::fma(n, -kExpLn2Lo, r);  // |r| <= ln(2)/2, a little more for the rounding of n
  float p = kExpC6;
  p = std::fma(p, r, kExpC5);
  p = std::fma(p, r, kExpC4);
  p = std::fma(p, r, kExpC3);
  p = std::fma(p, r, kExpC2);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  const int32_t ni = static_cast<int32_t>(n);
  const int32_t n1 = ni >> 1;  // floor(n / 2): both powers of two are normal and the first product is exact
  return p * exp2_int_f32(n1) * exp2_int_f32(ni - n1);
}

inline float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }
inline float silu_f32(float x) { return x / (1.0f + exp_f32(-x)); }

inline float tanh_f32(float x) {
  const float a = std::fabs(x);
  if (a < 0x1p-12f) return x;  // x - x^3/3 rounds to x or its neighbour
  const float t = exp_f32(-2.0f * a);
  return std::copysign((1.0f - t) / (1.0f + t), x);
}

inline float gelu_tanh_f32(float x) {
  const float u = 0.7978845608f * std::fma(0.044715f * x * x, x, x);  // sqrt(2/pi) * (x + 0.044715 x^3)
  return (0.5f * x) * (1.0f + tanh_f32(u));
}

inline float gelu_quick_f32(float x) { return x / (1.0f + exp_f32(-1.702f * x)); }

inline float relu_f32(float x) { return x > 0.0f ? x : (x != x ? x : 0.0f); }

// c * tanh(x / c). Requires: c > 0.
inline float softcap_f32(float x, float c) { return c * tanh_f32(x / c); }

// --- f64 ------------------------------------------------------------------------------------------------------

namespace fmath_detail {

// c[0] + c[1] x + ... by Horner's rule with fma.
template <int N>
inline double horner(double x, const double (&c)[N]) {
  double p = c[N - 1];
  for (int i = N - 2; i >= 0; --i) p = std::fma(p, x, c[i]);
  return p;
}

inline constexpr double kLn2Hi = 0x1.62e42feep-1;  // 32 bits of ln 2: n * hi is exact for |n| < 2^20
inline constexpr double kLn2Lo = 0x1.a39ef35793c76p-33;

}  // namespace fmath_detail

// e^x, relative error below 1e-15 where the result is normal.
inline double exp_f64(double x) {
  if (x != x) return x + x;
  if (x > 709.782712893384) return std::numeric_limits<double>::infinity();  // ln of the largest double
  if (x < -745.1332191019412) return 0.0;                                    // ln of half of the least denormal
  const double n = std::rint(x * 0x1.71547652b82fep+0);                      // 1 / ln 2
  double r = std::fma(n, -fmath_detail::kLn2Hi, x);
  r = std::fma(n, -fmath_detail::kLn2Lo, r);
  static constexpr double kC[] = {
      1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  const double p = fmath_detail::horner(r, kC);
  const int64_t ni = static_cast<int64_t>(n);
  const int64_t n1 = ni >> 1;
  return p * exp2_int_f64(n1) * exp2_int_f64(ni - n1);
}

// Natural logarithm, error below 1e-15 * max(1, |log x|). log(0) = -infinity, log(negative) = NaN.
inline double log_f64(double x) {
  if (x != x || x < 0.0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0.0) return -std::numeric_limits<double>::infinity();
  if (x == std::numeric_limits<double>::infinity()) return x;
  int64_t e = 0;
  if (x < 0x1p-1022) x *= 0x1p54, e = -54;
  uint64_t bits = std::bit_cast<uint64_t>(x);
  e += static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);  // [1, 2)
  if (m > 0x1.6a09e667f3bcdp+0) m *= 0.5, e += 1;                                         // (sqrt(1/2), sqrt 2]
  // log m = 2 artanh(s) = 2 (s + s^3/3 + s^5/5 ...), s^2 <= 0.0295: the first term left out is below 1e-18
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  static constexpr double kC[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                  1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  const double lm = 2.0 * std::fma(s * z, fmath_detail::horner(z, kC), s);
  const double n = static_cast<double>(e);
  return std::fma(n, fmath_detail::kLn2Hi, std::fma(n, fmath_detail::kLn2Lo, lm));
}

// base^y for base > 0: inverse frequencies are pow_f64(base, -2i / n_rot).
inline double pow_f64(double base, double y) { return exp_f64(y * log_f64(base)); }

struct SinCos {
  double sin, cos;
};

// Sine and cosine for |x| <= 2^31, absolute error below 1e-15; beyond that, and for NaN, both are NaN (a position times
// an inverse frequency of at most 1 never gets there).
inline SinCos sincos_f64(double x) {
  if (!(std::fabs(x) <= 0x1p31)) {
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  }
  const double n = std::rint(x * 0x1.45f306dc9c883p-1);  // quarter turns, |n| < 1.4e9 fits 31 bits
  // pi/2 in two parts; the first difference is exact: a multiple of 2^-53 below 1 in magnitude
  double r = std::fma(n, -0x1.921fb54442d18p+0, x);
  r = std::fma(n, -0x1.1a62633145c07p-54, r);  // |r| <= pi/4 + 4e-7
  const double z = r * r;
  static constexpr double kS[] = {-1.0 / 6,        1.0 / 120,          -1.0 / 5040,           1.0 / 362880,
                                  -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368000.0};
  static constexpr double kC[] = {-1.0 / 2,       1.0 / 24,        -1.0 / 720,           1.0 / 40320,
                                  -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200.0, 1.0 / 20922789888000.0};
  const double s = std::fma(r * z, fmath_detail::horner(z, kS), r);
  const double c = std::fma(z, fmath_detail::horner(z, kC), 1.0);
  const int32_t quarter = static_cast<int32_t>(n) & 3;
  const double sn = quarter & 1 ? c : s, cs = quarter & 1 ? s : c;
  return {quarter & 2 ? -sn : sn, (quarter + 1) & 2 ? -cs : cs};
}

// Error function, absolute error below 3e-12. With a = |x|:
//   a < 1:  x * P(x^2), P the Chebyshev fit of erf(sqrt z) / sqrt z on [0, 1], degree 8 (error 8e-13)
//   else:   1 - exp(-a^2) * Q(u), u = 9.6 / (2 + a) - 2.2, Q the Chebyshev fit of erfc(a) exp(a^2) over a in [1, 6],
//           degree 10 (error 2.5e-12, times exp(-1) at most); a is first cut to 6, where erf is 1 - 2e-17
inline double erf_f64(double x) {
  const double a = std::fabs(x);
  if (a < 1.0) {
    static constexpr double kP[] = {1.1283791670946768,    -0.3761263888963531,     0.11283791308604582,
                                    -0.026866133235095593, 0.005223783477189248,    -0.0008542637997087229,
                                    0.0001195656256820733, -1.3909340021874599e-05, 1.058938064107502e-06};
    return x * fmath_detail::horner(x * x, kP);
  }
  if (x != x) return x + x;
  static constexpr double kQ[] = {0.2214295402299318,     0.1618935680670416,     0.03856057042290149,
                                  0.005588815760719682,   0.00019713922355676813, -8.078927465097793e-05,
                                  -7.340777615211769e-06, 1.9728133257834122e-06, 1.641070265230732e-07,
                                  -6.31910957437951e-08,  -1.2274395239078061e-09};
  const double b = a < 6.0 ? a : 6.0;
  const double u = 9.6 / (2.0 + b) - 2.2;
  return std::copysign(1.0 - exp_f64(-(b * b)) * fmath_detail::horner(u, kQ), x);
}

inline float erf_f32(float x) { return static_cast<float>(erf_f64(static_cast<double>(x))); }
inline float gelu_erf_f32(float x) { return (0.5f * x) * (1.0f + erf_f32(x * 0.70710678f)); }

}  // namespace minfer
