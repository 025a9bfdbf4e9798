// fmath against the C library in wider precision, and the ends of every range.
#include "base/fmath.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace minfer {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Distance in units of the last place of `want` rounded to f32 (of the least denormal below the normal range).
double ulps(float got, double want) {
  const float w = static_cast<float>(std::fabs(want));
  const double ulp = static_cast<double>(std::nextafter(w, kInf)) - static_cast<double>(w);
  return std::fabs(static_cast<double>(got) - want) / ulp;
}

TEST(FMath, ExpF32IsWithinItsBound) {
  double worst = 0;
  for (float x = -103.9f; x < 88.72f; x += 0.0137f)
    worst = std::max(worst, ulps(exp_f32(x), std::exp(static_cast<double>(x))));
  EXPECT_LT(worst, 2.5);
}

TEST(FMath, ExpF32Ends) {
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exp_f32(kInf), kInf);
  EXPECT_EQ(exp_f32(-kInf), 0.0f);
  EXPECT_TRUE(std::isnan(exp_f32(kNan)));
  EXPECT_LT(exp_f32(88.7228317f), kInf);
  EXPECT_EQ(exp_f32(88.72284f), kInf);
  EXPECT_EQ(exp_f32(-103.9720f), 0x1p-149f);
  EXPECT_EQ(exp_f32(-103.9721f), 0.0f);
  EXPECT_EQ(exp_f32(-104.5f), 0.0f);
}

TEST(FMath, TanhAndGates) {
  for (float x = -20.0f; x < 20.0f; x += 0.0173f) {
    const double d = static_cast<double>(x), eps = 0x1p-23;
    // (1 - t) / (1 + t): t within 2 ulp, so 4 eps of absolute error
    EXPECT_NEAR(tanh_f32(x), std::tanh(d), 4 * eps) << x;
    EXPECT_NEAR(sigmoid_f32(x), 1 / (1 + std::exp(-d)), 4 * eps) << x;
    EXPECT_NEAR(silu_f32(x), d / (1 + std::exp(-d)), 4 * eps * std::fabs(d) + 1e-30) << x;
    EXPECT_NEAR(gelu_erf_f32(x), 0.5 * d * (1 + std::erf(d / std::sqrt(2.0))), 4 * eps * std::fabs(d) + 1e-30) << x;
    EXPECT_NEAR(gelu_tanh_f32(x), 0.5 * d * (1 + std::tanh(std::sqrt(2 / M_PI) * (d + 0.044715 * d * d * d))),
                8 * eps * std::fabs(d) + 1e-30)
        << x;
  }
  EXPECT_EQ(tanh_f32(1e-5f), 1e-5f);
  EXPECT_EQ(tanh_f32(-kInf), -1.0f);
  EXPECT_TRUE(std::isnan(tanh_f32(kNan)));
  EXPECT_TRUE(std::signbit(tanh_f32(-0.0f)));
  EXPECT_FALSE(std::signbit(relu_f32(-0.0f)));
  EXPECT_TRUE(std::isnan(relu_f32(kNan)));
  EXPECT_EQ(silu_f32(-1e30f), 0.0f);
  EXPECT_EQ(gelu_tanh_f32(-1e30f), 0.0f);
}

TEST(FMath, F64Functions) {
  std::mt19937_64 rng(7);
  std::uniform_real_distribution<double> wide(-700, 700), logs(-300, 300), small(-7, 7);
  for (int i = 0; i < 20000; ++i) {
    const double x = wide(rng);
    EXPECT_NEAR(exp_f64(x) / std::exp(x), 1.0, 1e-15) << x;
    const double y = std::pow(10.0, logs(rng));
    EXPECT_NEAR(log_f64(y), std::log(y), 1e-15 * std::max(1.0, std::fabs(std::log(y)))) << y;
    const double z = small(rng);
    EXPECT_NEAR(erf_f64(z), std::erf(z), 3e-12) << z;
    EXPECT_EQ(erf_f32(static_cast<float>(-z)), -erf_f32(static_cast<float>(z)));
  }
  EXPECT_EQ(log_f64(1.0), 0.0);
  EXPECT_EQ(log_f64(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_NEAR(log_f64(5e-324), std::log(5e-324), 1e-12);
  EXPECT_EQ(exp_f64(-800), 0.0);
  EXPECT_EQ(exp_f64(710), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(pow_f64(10000.0, -0.5), 0.01, 1e-17);
  EXPECT_EQ(erf_f32(kInf), 1.0f);
  EXPECT_TRUE(std::isnan(erf_f32(kNan)));
  EXPECT_EQ(erf_f32(0.0f), 0.0f);
}

TEST(FMath, SinCosOverAllPositions) {
  std::mt19937_64 rng(11);
  std::uniform_real_distribution<double> near(-10, 10), far(-0x1p31, 0x1p31);
  for (int i = 0; i < 40000; ++i) {
    const double x = i % 2 ? near(rng) : far(rng);
    const long double lx = x;
    const SinCos sc = sincos_f64(x);
    EXPECT_NEAR(sc.sin, static_cast<double>(std::sin(lx)), 1e-15) << x;
    EXPECT_NEAR(sc.cos, static_cast<double>(std::cos(lx)), 1e-15) << x;
  }
  EXPECT_EQ(sincos_f64(0).sin, 0.0);
  EXPECT_EQ(sincos_f64(0).cos, 1.0);
  EXPECT_NEAR(sincos_f64(2147483647.0).sin, static_cast<double>(std::sin(2147483647.0L)), 1e-15);
  EXPECT_TRUE(std::isnan(sincos_f64(1e300).sin));
  EXPECT_TRUE(std::isnan(sincos_f64(std::numeric_limits<double>::quiet_NaN()).cos));
}

}  // namespace
}  // namespace minfer
