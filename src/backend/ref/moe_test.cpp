// Mixture of experts: routing, expert matmuls and combination.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backend/testing/run_op.h"

namespace minfer {
namespace {

using testing::first_difference;
using ::testing::HasSubstr;
using testing::Random;
using testing::run_ref;
using testing::TestTensor;

constexpr double kEps = 0x1p-24;

Attrs top_k(int32_t k, bool norm = false) {
  Attrs a;
  a.top_k = k;
  a.norm_topk = norm;
  return a;
}

TEST(RefMoe, RouteAgainstFloat64) {
  Random rng(1);
  auto logits = rng.normal_f32({4, 13}, 3.0f);
  for (bool norm : {false, true}) {
    auto r = run_ref(Op::kMoeRoute, top_k(5, norm), {&logits}, {.n_threads = 2});
    ASSERT_TRUE(r.ok());
    for (int64_t t = 0; t < 4; ++t) {
      std::vector<int> order(13);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int a, int b) { return logits.row(t)[a] > logits.row(t)[b]; });
      double all = 0, chosen = 0;
      for (int e = 0; e < 13; ++e) all += std::exp(static_cast<double>(logits.row(t)[e]));
      for (size_t j = 0; j < 5; ++j) chosen += std::exp(static_cast<double>(logits.row(t)[order[j]]));
      for (int64_t j = 0; j < 5; ++j) {
        const int id = order[static_cast<size_t>(j)];
        EXPECT_EQ((*r)[0].view().row<int32_t>(t)[j], id);
        const double want = std::exp(static_cast<double>(logits.row(t)[id])) / (norm ? chosen : all);
        // exp: 5 eps and the rounding of its argument (up to 16), twice; 13 additions; two divisions
        EXPECT_NEAR((*r)[1].row(t)[j], want, (2 * 21 + 13 + 5 + 2) * kEps * want);
      }
    }
  }
}

TEST(RefMoe, TiesTakeTheLowerIdAndNanDoesNotCrash) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  auto logits = TestTensor::f32({3, 4}, {1, 2, 2, 2, 0, nan, 1, 2, inf, 0, 0, 0});
  auto r = run_ref(Op::kMoeRoute, top_k(2), {&logits});
  ASSERT_TRUE(r.ok());
  EXPECT_EQ((*r)[0].ints(), (std::vector<int32_t>{1, 2, 0, 1, 0, 1}));
  EXPECT_TRUE(std::isnan((*r)[1].row(1)[0]));
}

TEST(RefMoe, MatMulEqualsTheDenseOneOfEachExpert) {
  Random rng(2);
  for (DType t : {DType::kF16, DType::kQ5_1}) {
    auto w = rng.weight(t, {3, 5, 64});
    auto x = rng.normal_f32({4, 64}), x3 = rng.normal_f32({4, 2, 64});
    auto ids = TestTensor::i32({4, 2}, {0, 2, 2, 1, 0, 1, 2, 0});
    auto y = run_ref(Op::kMoeMatMul, top_k(2), {&x, &w, &ids}),
         y3 = run_ref(Op::kMoeMatMul, top_k(2), {&x3, &w, &ids}, {.n_threads = 3});
    ASSERT_TRUE(y.ok() && y3.ok());
    const std::vector<int32_t> id = ids.ints();
    for (int64_t r = 0; r < 8; ++r) {
      TestTensor expert = TestTensor::zeros(t, {5, 64});
      std::copy_n(w.view().row<std::byte>(id[static_cast<size_t>(r)] * 5), expert.bytes().size(),
                  expert.bytes().data());
      auto row = TestTensor::f32({1, 64}, std::vector<float>(x.row(r / 2), x.row(r / 2) + 64));
      auto row3 = TestTensor::f32({1, 64}, std::vector<float>(x3.row(r), x3.row(r) + 64));
      auto want = run_ref(Op::kMatMul, {}, {&row, &expert}), want3 = run_ref(Op::kMatMul, {}, {&row3, &expert});
      ASSERT_TRUE(want.ok() && want3.ok());
      EXPECT_EQ(
          first_difference(TestTensor::f32({1, 5}, std::vector<float>((*y)[0].row(r), (*y)[0].row(r) + 5)), (*want)[0]),
          "");
      EXPECT_EQ(first_difference(TestTensor::f32({1, 5}, std::vector<float>((*y3)[0].row(r), (*y3)[0].row(r) + 5)),
                                 (*want3)[0]),
                "");
    }
  }
}

TEST(RefMoe, ForeignExpertIsAnError) {
  Random rng(3);
  auto w = rng.weight(DType::kF32, {3, 5, 8});
  auto x = rng.normal_f32({1, 8});
  for (int32_t bad : {3, -1}) {
    auto ids = TestTensor::i32({1, 2}, {0, bad});
    auto y = run_ref(Op::kMoeMatMul, top_k(2), {&x, &w, &ids});
    ASSERT_FALSE(y.ok());
    EXPECT_THAT(y.error().message, HasSubstr(fmt::format("expert {} is outside the 3", bad)));
  }
}

TEST(RefMoe, CombineInOrder) {
  Random rng(4);
  auto y = rng.normal_f32({3, 4, 9}), w = rng.normal_f32({3, 4});
  auto out = run_ref(Op::kMoeCombine, top_k(4), {&y, &w}, {.n_threads = 2});
  ASSERT_TRUE(out.ok());
  for (int64_t t = 0; t < 3; ++t) {
    for (int64_t i = 0; i < 9; ++i) {
      double sum = 0, magnitude = 0;
      for (int64_t j = 0; j < 4; ++j) {
        const double term = static_cast<double>(y.row(t * 4 + j)[i]) * static_cast<double>(w.row(t)[j]);
        sum += term;
        magnitude += std::fabs(term);
      }
      EXPECT_NEAR((*out)[0].row(t)[i], sum, 4 * kEps * magnitude);
    }
  }
}

}  // namespace
}  // namespace minfer
