// The vector kernels of the small ops against their definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/backend.h"
#include "backend/testing/conformance.h"

namespace minfer::testing {
namespace {

constexpr int64_t kWidths[] = {1, 5, 15, 16, 17, 33, 64, 100, 257, 1029};

TEST(CpuOps, AddAndMul) {
  Random random(1);
  for (int64_t d : kWidths) {
    for (int64_t n : {1, 3}) {
      auto a = odd_f32(random, {n, d}), b = odd_f32(random, {n, d}), row = odd_f32(random, {d});
      for (Op op : {Op::kAdd, Op::kMul}) {
        EXPECT_EQ(check_conformance(op, {}, {&a, &b}), "") << d;
        EXPECT_EQ(check_conformance(op, {}, {&a, &row}), "") << d;
      }
    }
  }
}

TEST(CpuOps, MulByARepeatingGroup) {
  Random random(2);
  for (int64_t group : {1, 5, 16, 20, 64}) {
    auto a = odd_f32(random, {3, group * 7}), b = odd_f32(random, {group});
    EXPECT_EQ(check_conformance(Op::kMul, {}, {&a, &b}), "") << group;
  }
}

TEST(CpuOps, EmptyBatch) {
  Random random(3);
  auto a = TestTensor::zeros(DType::kF32, {0, 32});
  EXPECT_EQ(check_conformance(Op::kAdd, {}, {&a, &a}, {.in_place = false}), "");
  EXPECT_EQ(check_conformance(Op::kRmsNorm, {.eps = 1e-6f}, {&a}), "");
  EXPECT_EQ(check_conformance(Op::kGatedAct, {}, {&a, &a}, {.in_place = false}), "");
}

TEST(CpuOps, ScaleAndSoftcap) {
  Random random(4);
  for (int64_t d : kWidths) {
    auto x = odd_f32(random, {2, d});
    EXPECT_EQ(check_conformance(Op::kScale, {.scale = 1.7f}, {&x}), "") << d;
    EXPECT_EQ(check_conformance(Op::kSoftcap, {.softcap = 30.0f}, {&x}), "") << d;
  }
}

TEST(CpuOps, Activations) {
  Random random(5);
  for (int act = 0; act < 8; ++act) {
    const Attrs attrs{.act = static_cast<Act>(act)};
    for (int64_t d : kWidths) {
      auto gate = odd_f32(random, {2, d}), up = odd_f32(random, {2, d});
      EXPECT_EQ(check_conformance(Op::kUnary, attrs, {&gate}), "") << act << " " << d;
      EXPECT_EQ(check_conformance(Op::kGatedAct, attrs, {&gate, &up}), "") << act << " " << d;
    }
  }
}

// Every exponent and sign, and a fine walk over the range where exp is finite.
TEST(CpuOps, ExpOverItsWholeRange) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0x80000000u - 0x10000u; bits += 0x1357fu) {
    values.push_back(std::bit_cast<float>(bits));
    values.push_back(std::bit_cast<float>(bits | 0x80000000u));
  }
  for (float x = -105.0f; x < 90.0f; x += 0.00731f) values.push_back(x);
  auto x = TestTensor::f32({1, static_cast<int64_t>(values.size())}, values);
  for (Act act : {Act::kSigmoid, Act::kTanh, Act::kSilu, Act::kGeluTanh}) {
    EXPECT_EQ(check_conformance(Op::kUnary, {.act = act}, {&x}, {.threads = {2}}), "") << static_cast<int>(act);
  }
}

// erf leaves its polynomial at 1 and is cut at 6: x / sqrt 2 walks finely over both, and over every exponent.
TEST(CpuOps, ErfOverItsWholeRange) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0x80000000u - 0x10000u; bits += 0x3357fu) {
    values.push_back(std::bit_cast<float>(bits));
    values.push_back(std::bit_cast<float>(bits | 0x80000000u));
  }
  for (float x = -9.5f; x < 9.5f; x += 0.000731f) values.push_back(x);
  for (float edge : {1.41421356f, 8.48528137f}) {
    for (int i = -40; i <= 40; ++i) {
      const float x = std::bit_cast<float>(std::bit_cast<uint32_t>(edge) + static_cast<uint32_t>(i));
      values.push_back(x), values.push_back(-x);
    }
  }
  auto x = TestTensor::f32({1, static_cast<int64_t>(values.size())}, values);
  EXPECT_EQ(check_conformance(Op::kUnary, {.act = Act::kGeluErf}, {&x}, {.threads = {2}}), "");
}

TEST(CpuOps, RmsNorm) {
  Random random(6);
  for (int64_t d : {1, 4, 7, 31, 32, 33, 64, 65, 95, 96, 97, 128, 576, 1000, 1029}) {
    auto x = random.normal_f32({3, d}, 5.0f), w = random.normal_f32({d});
    EXPECT_EQ(check_conformance(Op::kRmsNorm, {.eps = 1e-6f}, {&x}), "") << d;
    EXPECT_EQ(check_conformance(Op::kRmsNormMul, {.eps = 1e-6f}, {&x, &w}), "") << d;
    auto odd = odd_f32(random, {3, d});
    EXPECT_EQ(check_conformance(Op::kRmsNormMul, {.eps = 1e-6f}, {&odd, &w}), "") << d;
    auto zero = TestTensor::zeros(DType::kF32, {1, d});
    EXPECT_EQ(check_conformance(Op::kRmsNorm, {}, {&zero}), "") << d;
  }
}

TEST(CpuOps, RmsNormOverGroups) {
  Random random(7);
  for (int64_t group : {5, 20, 64, 128}) {
    auto x = random.normal_f32({3, group * 6}), w = random.normal_f32({group}), all = random.normal_f32({group * 6});
    const Attrs attrs{.eps = 1e-5f, .group = static_cast<int32_t>(group)};
    EXPECT_EQ(check_conformance(Op::kRmsNorm, attrs, {&x}), "") << group;
    EXPECT_EQ(check_conformance(Op::kRmsNormMul, attrs, {&x, &w}), "") << group;
    EXPECT_EQ(check_conformance(Op::kRmsNormMul, attrs, {&x, &all}), "") << group;
  }
}

TEST(CpuOps, Rope) {
  Random random(8);
  for (RopeStyle style : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
    for (int64_t head_dim : {2, 5, 6, 20, 64, 80, 128}) {
      for (int64_t n_rot : {head_dim / 2 * 2, head_dim / 4 * 2}) {
        if (n_rot == 0) continue;
        auto x = random.normal_f32({3, head_dim * 3}), table = random.normal_f32({3, n_rot});
        const Attrs attrs{.rope_style = style, .head_dim = static_cast<int32_t>(head_dim)};
        EXPECT_EQ(check_conformance(Op::kRope, attrs, {&x, &table}), "") << head_dim << " " << n_rot;
        auto odd = odd_f32(random, {3, head_dim * 3}), odd_table = odd_f32(random, {3, n_rot});
        EXPECT_EQ(check_conformance(Op::kRope, attrs, {&odd, &odd_table}), "") << head_dim << " " << n_rot;
      }
    }
  }
}

TEST(CpuOps, MoeRoute) {
  Random random(13);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  struct Route {
    int32_t n_expert, top_k;
  };
  for (const Route r : {Route{1, 1}, {7, 7}, {8, 2}, {16, 4}, {17, 8}, {60, 4}, {128, 8}, {257, 1}}) {
    for (bool norm : {false, true}) {
      const int64_t n = r.n_expert;
      const Attrs attrs{.top_k = r.top_k, .norm_topk = norm};
      auto x = random.normal_f32({5, n}, 2.0f), odd = odd_f32(random, {20, n});
      auto ties = x, wide = random.normal_f32({3, n}, 200.0f);  // wide: weights that underflow
      for (float* p = ties.row(0); p != ties.row(0) + 5 * n; ++p) *p = std::floor(*p);
      for (int64_t e = 0; e < n; ++e) {
        ties.row(1)[e] = 0.0f, ties.row(2)[e] = -kInf;  // all equal; only -infinity
        ties.row(3)[e] = e % 3 == 0 ? 1.5f : -kInf;     // more experts wanted than have a weight
      }
      ties.row(4)[n / 2] = kInf;
      for (TestTensor* t : {&x, &odd, &ties, &wide}) {
        EXPECT_EQ(check_conformance(Op::kMoeRoute, attrs, {t}, {.threads = {2}}), "") << n << " " << r.top_k;
      }
    }
  }
  auto x = random.normal_f32({7, 60}), none = TestTensor::zeros(DType::kF32, {0, 8});
  EXPECT_EQ(check_conformance(Op::kMoeRoute, {.top_k = 4}, {&x}), "");
  EXPECT_EQ(check_conformance(Op::kMoeRoute, {.top_k = 2}, {&none}), "");
}

TEST(CpuOps, MoeCombine) {
  Random random(9);
  for (int64_t d : {1, 17, 300}) {
    auto y = odd_f32(random, {3, 4, d}), w = random.normal_f32({3, 4});
    EXPECT_EQ(check_conformance(Op::kMoeCombine, {.top_k = 4}, {&y, &w}), "") << d;
  }
}

const DType kKvTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0};

TEST(CpuOps, KvStores) {
  Random random(10);
  for (DType type : kKvTypes) {
    for (int32_t head_dim : {5, 20, 32, 64, 96, 128}) {
      if (type == DType::kQ8_0 && head_dim % 32 != 0) continue;
      for (bool odd : {false, true}) {
        auto x = odd ? odd_f32(random, {4, int64_t{3} * head_dim}) : random.normal_f32({4, int64_t{3} * head_dim});
        auto slots = TestTensor::i32({4}, {0, 31, 17, 16});
        const Attrs attrs{.n_head_kv = 3, .head_dim = head_dim};
        auto k = TestTensor::region(false, type, 32, 3, head_dim), v = TestTensor::region(true, type, 32, 3, head_dim);
        EXPECT_EQ(check_conformance(Op::kKvStoreK, attrs, {&x, &k, &slots}), "")
            << dtype_info(type).name << " " << head_dim;
        EXPECT_EQ(check_conformance(Op::kKvStoreV, attrs, {&x, &v, &slots}), "")
            << dtype_info(type).name << " " << head_dim;
      }
    }
  }
}

TEST(CpuOps, RopeStore) {
  Random random(11);
  for (DType type_k : kKvTypes) {
    for (DType type_v : {DType::kF16, DType::kQ8_0}) {
      for (bool norms : {false, true}) {
        for (bool with_q : {false, true}) {
          const int64_t d = 64, n = 5;
          auto q = random.normal_f32({n, 6 * d}), k = random.normal_f32({n, 2 * d}), v = random.normal_f32({n, 2 * d});
          auto wq = random.normal_f32({d}), wk = random.normal_f32({d}), table = random.normal_f32({n, d - 16});
          auto region_k = TestTensor::region(false, type_k, 48, 2, d),
               region_v = TestTensor::region(true, type_v, 48, 2, d);
          auto slots = TestTensor::i32({n}, {3, 47, 16, 15, 20});
          Attrs attrs{.eps = 1e-6f, .n_head = 6, .n_head_kv = 2, .head_dim = 64};
          for (RopeStyle style : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
            attrs.rope_style = style;
            EXPECT_EQ(check_conformance(Op::kRopeStore, attrs,
                                        {with_q ? &q : nullptr, &k, &v, with_q && norms ? &wq : nullptr,
                                         norms ? &wk : nullptr, &table, &region_k, &region_v, &slots}),
                      "");
          }
        }
      }
    }
  }
}

TEST(CpuOps, SlotsOutsideTheRegion) {
  Random random(12);
  auto x = random.normal_f32({2, 64}), table = random.normal_f32({2, 64});
  for (int32_t bad : {-1, 32, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
    auto slots = TestTensor::i32({2}, {bad, 3});
    auto k = TestTensor::region(false, DType::kF16, 32, 1, 64), v = TestTensor::region(true, DType::kF16, 32, 1, 64);
    const Attrs attrs{.n_head = 1, .n_head_kv = 1, .head_dim = 64, .layer = 7};
    for (const std::string& isa : available_isas()) {
      auto backend = make_backend({"cpu", isa});
      ASSERT_TRUE(backend.ok());
      auto r = run_kernels((*backend)->kernels(Op::kRopeStore), Op::kRopeStore, attrs,
                           {&x, &x, &x, nullptr, nullptr, &table, &k, &v, &slots});
      ASSERT_FALSE(r.ok());
      EXPECT_EQ(r.error().code, ErrorCode::kOutOfRange);
      for (const std::string& part :
           {std::to_string(bad), std::string("32 slots"), std::string("layer 7"), std::string("token 0")}) {
        EXPECT_NE(r.error().message.find(part), std::string::npos) << r.error().message;
      }
      for (std::byte b : k.bytes()) ASSERT_EQ(b, std::byte{0});  // one thread: it stopped at the first token
    }
    EXPECT_EQ(check_conformance(Op::kKvStoreK, attrs, {&x, &k, &slots}), "");
  }
}

TEST(CpuOps, RefusalsSayWhy) {
  auto backend = make_backend({"cpu", ""});
  ASSERT_TRUE(backend.ok());
  const Kernel& kernel = (*backend)->kernels(Op::kKvStoreK)[0];
  auto x = TestTensor::zeros(DType::kF32, {1, 40}), slots = TestTensor::i32({1}, {0});
  const Attrs attrs{.n_head_kv = 1, .head_dim = 40};
  auto k = TestTensor::zeros(DType::kF32, {16, 40});
  TensorView in[] = {x.view(), k.view(), slots.view()};
  in[1].dtype = DType::kQ8_0;
  const bool present[] = {true, true, true};
  const NodeDesc node{Op::kKvStoreK, attrs, in, {}, present};
  EXPECT_NE(kernel.accepts(node).find("multiple of 32, got 40"), std::string::npos) << kernel.accepts(node);
}

}  // namespace
}  // namespace minfer::testing
