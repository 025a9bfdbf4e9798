// Element-wise reference ops, embedding, norms and rotation against float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "backend/ref/ref_kernels.h"
#include "backend/testing/run_op.h"
#include "quant/format.h"

namespace minfer {
namespace {

using testing::first_difference;
using ::testing::HasSubstr;
using testing::Random;
using testing::run_kernel;
using testing::run_ref;
using testing::TestTensor;

constexpr double kEps = 0x1p-24;

TEST(RefKernels, PrimitivesHaveOneCompositesNone) {
  for (int op = 0; op < kOpCount; ++op) {
    EXPECT_EQ(ref_kernels(static_cast<Op>(op)).size(), op_info(static_cast<Op>(op)).composite ? 0u : 1u);
    for (const Kernel& k : ref_kernels(static_cast<Op>(op))) EXPECT_STREQ(k.name, op_info(static_cast<Op>(op)).name);
  }
}

TEST(RefElementwise, AddMulScaleRoundOnce) {
  Random rng(1);
  Attrs scale;
  scale.scale = 0.3f;
  for (Shape shape : {Shape{1, 1}, Shape{3, 17}, Shape{2, 3, 8}, Shape{0, 5}}) {
    auto a = rng.normal_f32(shape), b = rng.normal_f32(shape), row = rng.normal_f32({shape.last()});
    auto sum = run_ref(Op::kAdd, {}, {&a, &b}), biased = run_ref(Op::kAdd, {}, {&a, &row});
    auto product = run_ref(Op::kMul, {}, {&a, &b}), weighted = run_ref(Op::kMul, {}, {&a, &row}),
         scaled = run_ref(Op::kScale, scale, {&a});
    ASSERT_TRUE(sum.ok() && biased.ok() && product.ok() && weighted.ok() && scaled.ok());
    for (int64_t i = 0; i < shape.count(); ++i) {
      const float x = a.row(0)[i], y = b.row(0)[i], r = row.row(0)[i % shape.last()];
      EXPECT_EQ((*sum)[0].row(0)[i], x + y);
      EXPECT_EQ((*biased)[0].row(0)[i], x + r);
      EXPECT_EQ((*product)[0].row(0)[i], x * y);
      EXPECT_EQ((*weighted)[0].row(0)[i], x * r);
      EXPECT_EQ((*scaled)[0].row(0)[i], x * 0.3f);
    }
  }
}

TEST(RefElementwise, MulRepeatsAShortRow) {
  auto a = TestTensor::f32({1, 6}, {1, 2, 3, 4, 5, 6}), b = TestTensor::f32({3}, {10, 100, 1000});
  auto y = run_ref(Op::kMul, {}, {&a, &b});
  ASSERT_TRUE(y.ok());
  EXPECT_EQ((*y)[0].floats(), (std::vector<float>{10, 200, 3000, 40, 500, 6000}));
}

TEST(RefElementwise, ActivationsAgainstFloat64) {
  const std::pair<Act, std::function<double(double)>> acts[] = {
      {Act::kSilu, [](double x) { return x / (1 + std::exp(-x)); }},
      {Act::kGeluTanh,
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {Act::kGeluErf, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {Act::kGeluQuick, [](double x) { return x / (1 + std::exp(-1.702 * x)); }},
      {Act::kRelu, [](double x) { return x > 0 ? x : 0; }},
      {Act::kRelu2, [](double x) { return x > 0 ? x * x : 0; }},
      {Act::kTanh, [](double x) { return std::tanh(x); }},
      {Act::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
  };
  Random rng(2);
  auto x = rng.normal_f32({2, 301}, 4.0f);
  auto up = rng.normal_f32({2, 301});
  for (const auto& [act, f] : acts) {
    Attrs a;
    a.act = act;
    auto y = run_ref(Op::kUnary, a, {&x}, {.n_threads = 2});
    auto gated = run_ref(Op::kGatedAct, a, {&x, &up});
    ASSERT_TRUE(y.ok() && gated.ok());
    for (int64_t i = 0; i < 602; ++i) {
      const double v = x.row(0)[i];
      // exp within 2.5 ulp of its value (5 eps), a few operations after it; its argument's rounding grows with x
      EXPECT_NEAR((*y)[0].row(0)[i], f(v),
                  (16 + 2 * std::fabs(v)) * kEps * std::max(1.0, std::fabs(v)) * std::max(1.0, std::fabs(v)))
          << act_name(act) << " " << v;
      EXPECT_EQ((*gated)[0].row(0)[i], (*y)[0].row(0)[i] * up.row(0)[i]);
    }
  }
}

TEST(RefElementwise, SoftcapAgainstFloat64) {
  Random rng(3);
  auto x = rng.normal_f32({1, 400}, 60.0f);
  Attrs a;
  a.softcap = 30;
  auto y = run_ref(Op::kSoftcap, a, {&x});
  ASSERT_TRUE(y.ok());
  for (int64_t i = 0; i < 400; ++i) {
    EXPECT_NEAR((*y)[0].row(0)[i], 30 * std::tanh(static_cast<double>(x.row(0)[i]) / 30), 30 * 16 * kEps);
  }
}

TEST(RefElementwise, InPlaceGivesTheSameBits) {
  Random rng(4);
  Attrs a;
  a.eps = 1e-5f;
  a.group = 16;
  a.softcap = 5;
  a.head_dim = 16;
  for (Op op : {Op::kAdd, Op::kMul, Op::kScale, Op::kUnary, Op::kSoftcap, Op::kRmsNorm, Op::kRope}) {
    auto x = rng.normal_f32({3, 32}), b = rng.normal_f32(op == Op::kRope ? Shape{3, 12} : Shape{3, 32});
    const bool two = op == Op::kAdd || op == Op::kMul || op == Op::kRope;
    testing::Inputs in = two ? testing::Inputs{&x, &b} : testing::Inputs{&x};
    auto want = run_ref(op, a, in);
    ASSERT_TRUE(want.ok()) << want.error().message;
    auto padded = run_ref(op, a, in, {.n_threads = 3, .row_pad = 20});
    ASSERT_TRUE(padded.ok()) << padded.error().message;
    EXPECT_EQ(first_difference(*padded, *want), "") << op_info(op).name;
    auto got = run_kernel(ref_kernels(op)[0], op, a, in, {.n_threads = 2, .in_place = true});
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(first_difference(*got, *want), "") << op_info(op).name;
  }
}

TEST(RefRmsNorm, AgainstFloat64) {
  Random rng(5);
  for (int64_t d : {1, 7, 63, 64, 65, 576}) {
    for (int32_t groups : {1, 2}) {
      auto x = rng.normal_f32({2, d * groups}, 3.0f);
      auto w = rng.normal_f32({d});
      Attrs a;
      a.eps = 1e-5f;
      a.group = groups == 1 ? 0 : static_cast<int32_t>(d);
      auto y = run_ref(Op::kRmsNorm, a, {&x});
      auto yw = run_ref(Op::kRmsNormMul, a, {&x, &w});
      ASSERT_TRUE(y.ok() && yw.ok());
      for (int64_t g = 0; g < 2 * groups; ++g) {
        const float* in = x.row(0) + g * d;
        double sum = 0;
        for (int64_t i = 0; i < d; ++i) sum += static_cast<double>(in[i]) * static_cast<double>(in[i]);
        const double r = 1 / std::sqrt(sum / static_cast<double>(d) + 1e-5);
        for (int64_t i = 0; i < d; ++i) {
          const double want = static_cast<double>(in[i]) * r;
          // r and the product round once each; eps as f32 is off by one more rounding where it counts
          EXPECT_NEAR((*y)[0].row(0)[g * d + i], want, 3 * kEps * std::fabs(want));
          EXPECT_EQ((*yw)[0].row(0)[g * d + i], (*y)[0].row(0)[g * d + i] * w.row(0)[i]);
        }
      }
    }
  }
}

TEST(RefRmsNorm, ZerosInfinityAndNan) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  auto x = TestTensor::f32({3, 2}, {0, 0, inf, 1, nan, 1});
  Attrs a;
  a.eps = 1e-6f;
  auto y = run_ref(Op::kRmsNorm, a, {&x});
  ASSERT_TRUE(y.ok());
  EXPECT_EQ((*y)[0].row(0)[0], 0.0f);
  EXPECT_TRUE(std::isnan((*y)[0].row(1)[0]));
  EXPECT_EQ((*y)[0].row(1)[1], 0.0f);
  EXPECT_TRUE(std::isnan((*y)[0].row(2)[1]));
}

TEST(RefRope, TableAgainstLongDouble) {
  std::vector<double> freq;
  for (int i = 0; i < 32; ++i) freq.push_back(std::pow(500000.0, -i / 32.0));
  auto f = TestTensor::f64({32}, freq);
  auto positions = TestTensor::i32({5}, {0, 1, 4095, 1000000, 2147483647});
  Attrs scaled;
  scaled.scale = 1.25f;
  auto t = run_ref(Op::kRopeTable, {}, {&positions, &f}),
       ts = run_ref(Op::kRopeTable, scaled, {&positions, &f}, {.n_threads = 2});
  ASSERT_TRUE(t.ok() && ts.ok());
  const std::vector<int32_t> p = positions.ints();
  for (int64_t n = 0; n < 5; ++n) {
    for (size_t i = 0; i < 32; ++i) {
      const long double angle =
          static_cast<double>(p[static_cast<size_t>(n)]) * freq[i];  // the angle itself rounds to f64
      EXPECT_NEAR((*t)[0].row(n)[i], static_cast<double>(std::cos(angle)), kEps);
      EXPECT_NEAR((*t)[0].row(n)[32 + i], static_cast<double>(std::sin(angle)), kEps);
      EXPECT_EQ((*ts)[0].row(n)[i], (*t)[0].row(n)[i] * 1.25f);
    }
  }
}

TEST(RefRope, StylesAndPartialRotation) {
  Random rng(6);
  auto x = rng.normal_f32({2, 3 * 10});
  auto table = rng.normal_f32({2, 8});
  for (RopeStyle style : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
    Attrs a;
    a.head_dim = 10;
    a.rope_style = style;
    auto y = run_ref(Op::kRope, a, {&x, &table});
    ASSERT_TRUE(y.ok());
    for (int64_t t = 0; t < 2; ++t) {
      for (int64_t h = 0; h < 30; h += 10) {
        for (int64_t i = 0; i < 4; ++i) {
          const int64_t ia = h + (style == RopeStyle::kNeox ? i : 2 * i),
                        ib = h + (style == RopeStyle::kNeox ? i + 4 : 2 * i + 1);
          const double p = x.row(t)[ia], q = x.row(t)[ib], c = table.row(t)[i], s = table.row(t)[4 + i];
          EXPECT_NEAR((*y)[0].row(t)[ia], p * c - q * s, 2 * kEps * (std::fabs(p * c) + std::fabs(q * s)));
          EXPECT_NEAR((*y)[0].row(t)[ib], p * s + q * c, 2 * kEps * (std::fabs(p * s) + std::fabs(q * c)));
        }
        for (int64_t i = 8; i < 10; ++i) EXPECT_EQ((*y)[0].row(t)[h + i], x.row(t)[h + i]);
      }
    }
  }
}

TEST(RefEmbed, DecodesRowsAndRefusesForeignIds) {
  Random rng(7);
  for (DType t : {DType::kF32, DType::kBF16, DType::kQ6_K, DType::kQ4_0}) {
    auto table = rng.weight(t, {9, 256});
    auto ids = TestTensor::i32({3}, {8, 0, 8});
    auto y = run_ref(Op::kEmbed, {}, {&ids, &table}, {.n_threads = 2});
    ASSERT_TRUE(y.ok());
    std::vector<float> row(256);
    quant::format(t).decode_row(table.view().row<std::byte>(8), row.data(), 256);
    EXPECT_EQ(first_difference(TestTensor::f32({1, 256}, std::vector<float>((*y)[0].row(2), (*y)[0].row(2) + 256)),
                               TestTensor::f32({1, 256}, row)),
              "");
    for (int32_t bad : {9, -1, std::numeric_limits<int32_t>::min()}) {
      auto foreign = TestTensor::i32({2}, {1, bad});
      auto e = run_ref(Op::kEmbed, {}, {&foreign, &table});
      ASSERT_FALSE(e.ok());
      EXPECT_EQ(e.error().code, ErrorCode::kOutOfRange);
      EXPECT_THAT(e.error().message, HasSubstr(fmt::format("id {} is outside the vocabulary (0..8)", bad)));
    }
  }
}

TEST(RefGetRows, PicksRowsAndRefusesOthers) {
  auto x = TestTensor::f32({3, 2}, {1, 2, 3, 4, 5, 6});
  auto rows = TestTensor::i32({4}, {2, 0, 0, 1});
  auto y = run_ref(Op::kGetRows, {}, {&x, &rows});
  ASSERT_TRUE(y.ok());
  EXPECT_EQ((*y)[0].floats(), (std::vector<float>{5, 6, 1, 2, 1, 2, 3, 4}));
  auto bad = TestTensor::i32({1}, {3});
  EXPECT_THAT(run_ref(Op::kGetRows, {}, {&x, &bad}).error().message, HasSubstr("row 3 is outside the 3 rows"));
}

}  // namespace
}  // namespace minfer
