// Reference matmuls against a float64 oracle on decoded weights; q8a.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/ref/dot.h"
#include "backend/testing/run_op.h"
#include "quant/format.h"

namespace minfer {
namespace {

using testing::first_difference;
using ::testing::HasSubstr;
using testing::Random;
using testing::run_ref;
using testing::TestTensor;

constexpr double kEps = 0x1p-24;  // unit roundoff of f32
constexpr DType kQuantized[] = {DType::kQ4_0,   DType::kQ4_1,   DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                                DType::kQ2_K,   DType::kQ3_K,   DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                                DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};
constexpr DType kFloats[] = {DType::kF32, DType::kF16, DType::kBF16};

struct Expected {
  double value, bound;
};

// The sum in float64 over decoded weights and dequantized activations. The bound counts the roundings: two or three per
// block of 32 (its product of scales, one or two fma), one per segment and those of the decoder, each relative to the
// sum of the magnitudes the block's terms are made of.
Expected quantized_dot(const TestTensor& w, int64_t row, const float* x, int64_t k) {
  const DType t = w.view().dtype;
  std::vector<float> decoded(static_cast<size_t>(k));
  quant::format(t).decode_row(w.view().row<std::byte>(row), decoded.data(), k);
  std::vector<ref::Q8aBlock> acts(static_cast<size_t>(k / 32));
  ref::quantize_q8a(x, k, acts.data());
  std::vector<ref::CodeBlock> codes(static_cast<size_t>(k / 32));
  ref::decode_codes(t, w.view().row<std::byte>(row), k, codes.data());
  double sum = 0, magnitude = 0;
  for (int64_t i = 0; i < k; ++i) {
    const auto& c = codes[static_cast<size_t>(i / 32)];
    const auto& a = acts[static_cast<size_t>(i / 32)];
    const double act = static_cast<double>(a.d) * a.q[i % 32];
    sum += static_cast<double>(decoded[static_cast<size_t>(i)]) * act;
    const bool halves = ref::code_step(t) == ref::CodeStep::kHalves || ref::code_step(t) == ref::CodeStep::kHalvesMin;
    const double scale = std::fabs(static_cast<double>(c.a)) * (halves ? std::fabs(i % 32 < 16 ? c.sc0 : c.sc1) : 1);
    const double min = std::fabs(static_cast<double>(c.b)) * (t == DType::kQ2_K ? (i % 32 < 16 ? c.mn0 : c.mn1) : 1);
    magnitude += (scale * std::fabs(c.q[i % 32]) + min) * std::fabs(act);
  }
  const double roundings = 3.0 * static_cast<double>(k) / 32 + static_cast<double>(k) / 1024 + 6;
  return {sum, roundings * kEps * magnitude};
}

TEST(RefMatMul, QuantizedAgainstFloat64) {
  Random rng(1);
  for (DType t : kQuantized) {
    const int64_t block = dtype_info(t).block_size;
    for (int64_t k : {block, int64_t{1024}, int64_t{1024} + block, 2304 / block * block}) {
      auto x = rng.normal_f32({3, k});
      auto w = rng.weight(t, {5, k});
      auto y = run_ref(Op::kMatMul, {}, {&x, &w});
      ASSERT_TRUE(y.ok()) << y.error().message;
      for (int64_t n = 0; n < 3; ++n) {
        for (int64_t m = 0; m < 5; ++m) {
          const Expected e = quantized_dot(w, m, x.row(n), k);
          EXPECT_NEAR((*y)[0].row(n)[m], e.value, e.bound)
              << dtype_info(t).name << " k " << k << " [" << n << ", " << m << "]";
        }
      }
    }
  }
}

TEST(RefMatMul, FloatAgainstFloat64) {
  Random rng(2);
  for (DType t : kFloats) {
    for (int64_t k : {1, 5, 33, 1024, 2050}) {
      auto x = rng.normal_f32({2, k});
      auto w = rng.weight(t, {3, k});
      auto y = run_ref(Op::kMatMul, {}, {&x, &w});
      ASSERT_TRUE(y.ok()) << y.error().message;
      std::vector<float> decoded(static_cast<size_t>(k));
      for (int64_t m = 0; m < 3; ++m) {
        quant::format(t).decode_row(w.view().row<std::byte>(m), decoded.data(), k);
        for (int64_t n = 0; n < 2; ++n) {
          double sum = 0, magnitude = 0;
          for (int64_t i = 0; i < k; ++i) {
            const double term = static_cast<double>(decoded[static_cast<size_t>(i)]) * static_cast<double>(x.row(n)[i]);
            sum += term;
            magnitude += std::fabs(term);
          }
          EXPECT_NEAR((*y)[0].row(n)[m], sum, static_cast<double>(k) * kEps * magnitude + 1e-40)
              << dtype_info(t).name << " k " << k;
        }
      }
    }
  }
}

TEST(RefMatMul, SameBitsForAnyThreadsAndBatch) {
  Random rng(3);
  for (DType t : {DType::kF16, DType::kQ4_1, DType::kQ2_K}) {
    auto x = rng.normal_f32({5, 1280});
    auto w = rng.raw_weight(t, {7, 1280});  // any bytes: NaN and infinite scales too
    auto one = run_ref(Op::kMatMul, {}, {&x, &w});
    ASSERT_TRUE(one.ok()) << one.error().message;
    for (int threads : {2, 3}) {
      auto many = run_ref(Op::kMatMul, {}, {&x, &w}, {.n_threads = threads, .row_pad = 12});
      ASSERT_TRUE(many.ok()) << many.error().message;
      EXPECT_EQ(first_difference(*many, *one), "");
    }
    auto last = TestTensor::f32({1, 1280}, std::vector<float>(x.row(4), x.row(4) + 1280));
    auto alone = run_ref(Op::kMatMul, {}, {&last, &w});
    ASSERT_TRUE(alone.ok());
    EXPECT_EQ(first_difference((*alone)[0],
                               TestTensor::f32({1, 7}, std::vector<float>((*one)[0].row(4), (*one)[0].row(4) + 7))),
              "");
  }
}

TEST(RefMatMul, RefusesPackedWeights) {
  Random rng(4);
  auto x = rng.normal_f32({1, 32});
  TestTensor w = TestTensor::region(false, DType::kF32, 16, 1, 32);  // any layout but plain
  EXPECT_THAT(run_ref(Op::kMatMul, {}, {&x, &w}).error().message, HasSubstr("needs plain weights"));
}

TEST(RefMatMul, Composites) {
  Random rng(5);
  auto x = rng.normal_f32({2, 64}), bias = rng.normal_f32({5}), residual = rng.normal_f32({2, 5});
  auto w = rng.weight(DType::kQ8_0, {5, 64}), w2 = rng.weight(DType::kF16, {3, 64});
  auto plain = run_ref(Op::kMatMul, {}, {&x, &w});
  auto full = run_ref(Op::kMatMulAdd, {}, {&x, &w, &bias, &residual});
  auto none = run_ref(Op::kMatMulAdd, {}, {&x, &w, nullptr, nullptr});
  ASSERT_TRUE(plain.ok() && full.ok() && none.ok());
  EXPECT_EQ(first_difference(*none, *plain), "");
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t m = 0; m < 5; ++m)
      EXPECT_EQ((*full)[0].row(n)[m], ((*plain)[0].row(n)[m] + bias.row(0)[m]) + residual.row(n)[m]);
  }
  Attrs group;
  group.n_group = 2;
  auto both = run_ref(Op::kMatMulGroup, group, {&x, &w, &w2, &bias, nullptr});
  auto second = run_ref(Op::kMatMul, {}, {&x, &w2});
  ASSERT_TRUE(both.ok() && second.ok());
  EXPECT_EQ((*both)[0].row(1)[4], (*plain)[0].row(1)[4] + bias.row(0)[4]);
  EXPECT_EQ(first_difference((*both)[1], (*second)[0]), "");
}

TEST(RefQ8a, Definition) {
  float x[32];
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i - 16);
  ref::Q8aBlock b;
  ref::quantize_q8a(x, 32, &b);
  EXPECT_EQ(b.d, 16.0f / 127.0f);
  EXPECT_EQ(b.q[0], -127);
  EXPECT_EQ(b.q[16], 0);
  EXPECT_EQ(b.q[24], 64);  // 8 * 127 / 16 = 63.5 rounds to even
  EXPECT_EQ(b.s, b.d * static_cast<float>(b.h0 + b.h1));

  x[3] = std::numeric_limits<float>::infinity();
  ref::quantize_q8a(x, 32, &b);
  EXPECT_TRUE(std::isnan(b.d) && std::isnan(b.s));
  EXPECT_EQ(b.q[0], 0);
  x[3] = -std::numeric_limits<float>::quiet_NaN();
  ref::quantize_q8a(x, 32, &b);
  EXPECT_TRUE(std::isnan(b.d));

  for (float& v : x) v = 0x1p-101f;
  ref::quantize_q8a(x, 32, &b);
  EXPECT_EQ(b.d, 0.0f);
  EXPECT_EQ(b.h0, 0);
  for (float& v : x) v = std::numeric_limits<float>::max();
  ref::quantize_q8a(x, 32, &b);
  EXPECT_EQ(b.q[31], 127);
}

TEST(RefQ8a, ErrorIsHalfAStep) {
  Random rng(6);
  auto x = rng.normal_f32({1, 4096}, 5.0f);
  std::vector<ref::Q8aBlock> blocks(128);
  ref::quantize_q8a(x.row(0), 4096, blocks.data());
  for (int64_t i = 0; i < 4096; ++i) {
    const auto& b = blocks[static_cast<size_t>(i / 32)];
    EXPECT_NEAR(static_cast<double>(b.d) * b.q[i % 32], x.row(0)[i], static_cast<double>(b.d) * (0.5 + 256 * kEps));
    EXPECT_LE(std::abs(b.q[i % 32]), 127);
  }
}

}  // namespace
}  // namespace minfer
