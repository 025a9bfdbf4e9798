// Small examples worked out by hand, through the reference kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/testing/run_op.h"
#include "tensor/kv_layout.h"

namespace minfer {
namespace {

using testing::Inputs;
using testing::run_ref;
using testing::TestTensor;

TEST(WorkedExamples, RmsNormOfOneToFour) {
  auto x = TestTensor::f32({1, 4}, {1, 2, 3, 4});  // mean of squares 30 / 4 = 7.5
  auto y = run_ref(Op::kRmsNorm, {}, {&x});
  ASSERT_TRUE(y.ok()) << y.error().message;
  const float r = static_cast<float>(1.0 / std::sqrt(7.5));
  EXPECT_EQ((*y)[0].floats(), (std::vector<float>{r, 2 * r, 3 * r, 4 * r}));
}

// A cache of one head of four values, one sequence, one page.
class Cache {
 public:
  Cache() : k_(TestTensor::region(false, DType::kF32, 16, 1, 4)), v_(TestTensor::region(true, DType::kF32, 16, 1, 4)) {
    attrs_.n_head = attrs_.n_head_kv = 1;
    attrs_.head_dim = 4;
    attrs_.scale = 0.5f;
    attrs_.page_size = 16;
    attrs_.n_kv = 256;
    store_.n_head_kv = 1;
    store_.head_dim = 4;
  }

  void store(int32_t slot, std::vector<float> k, std::vector<float> v) {
    auto kt = TestTensor::f32({1, 4}, k), vt = TestTensor::f32({1, 4}, v);
    auto slots = TestTensor::i32({1}, {slot});
    EXPECT_TRUE(run_ref(Op::kKvStoreK, store_, {&kt, &k_, &slots}).ok());
    EXPECT_TRUE(run_ref(Op::kKvStoreV, store_, {&vt, &v_, &slots}).ok());
  }

  // The output for query q at `position`; weights() gives the normalised weights of the last call.
  std::vector<float> attend(std::vector<float> q, int32_t position) {
    auto qt = TestTensor::f32({1, 4}, q);
    auto positions = TestTensor::i32({1}, {position}), seqs = TestTensor::i32({1}, {0}),
         table = TestTensor::i32({1, 1}, {0});
    auto scores = run_ref(Op::kAttnScores, attrs_, {&qt, &k_, &positions, &seqs, &table});
    EXPECT_TRUE(scores.ok()) << scores.error().message;
    auto weights = run_ref(Op::kAttnSoftmax, {}, {&(*scores)[0], &positions});
    EXPECT_TRUE(weights.ok()) << weights.error().message;
    const std::vector<float> row = (*weights)[0].floats();
    weights_.assign(row.begin(), row.begin() + position + 1);
    for (float& w : weights_) w /= row[257];  // the sum of the first tile
    for (int j = position + 1; j < 256; ++j) EXPECT_EQ(row[static_cast<size_t>(j)], 0.0f);
    auto out = run_ref(Op::kAttnMix, attrs_, {&(*weights)[0], &v_, &positions, &seqs, &table});
    EXPECT_TRUE(out.ok()) << out.error().message;
    auto fused = run_ref(Op::kAttention, attrs_, {&qt, &k_, &v_, &positions, &seqs, &table});
    EXPECT_TRUE(fused.ok()) << fused.error().message;
    EXPECT_EQ(first_difference(*fused, *out), "");
    return (*out)[0].floats();
  }

  const std::vector<float>& weights() const { return weights_; }

 private:
  TestTensor k_, v_;
  Attrs attrs_, store_;
  std::vector<float> weights_;
};

TEST(WorkedExamples, AttentionOverTwoAndThreePositions) {
  Cache cache;
  cache.store(0, {1, 0, 0, 0}, {1, 2, 0, 0});
  cache.store(1, {0, 1, 0, 0}, {3, 4, 0, 0});

  // both scores are 0.5: the mean of the values
  EXPECT_EQ(cache.attend({1, 1, 0, 0}, 1), (std::vector<float>{2, 3, 0, 0}));
  EXPECT_EQ(cache.weights(), (std::vector<float>{0.5f, 0.5f}));

  // scores 0.5 and 0: weights e^0.5 / (1 + e^0.5)
  const std::vector<float> out = cache.attend({1, 0, 0, 0}, 1);
  EXPECT_NEAR(cache.weights()[0], 0.622459f, 1e-6);
  EXPECT_NEAR(cache.weights()[1], 0.377541f, 1e-6);
  EXPECT_NEAR(out[0], 0.622459 * 1 + 0.377541 * 3, 1e-5);

  // position 0 sees itself only
  EXPECT_EQ(cache.attend({7, 1, 0, 0}, 0), (std::vector<float>{1, 2, 0, 0}));

  // the decode step: scores 0, 0.5, 0.5
  cache.store(2, {1, 1, 0, 0}, {5, 0, 0, 0});
  const std::vector<float> step = cache.attend({0, 1, 1, 0}, 2);
  EXPECT_NEAR(cache.weights()[0], 0.2327f, 1e-4);
  EXPECT_NEAR(cache.weights()[1], 0.3837f, 1e-4);
  EXPECT_NEAR(cache.weights()[2], 0.3837f, 1e-4);
  EXPECT_NEAR(step[0], 3.302, 1e-3);
  EXPECT_NEAR(step[1], 2.000, 1e-3);
  EXPECT_EQ(step[2], 0.0f);
  EXPECT_EQ(step[3], 0.0f);
}

TEST(WorkedExamples, KvBytesPerToken) {
  // n_layer * (K + V) * width * 4 bytes
  const auto per_token = [](int64_t n_layer, int64_t n_head_kv, int64_t head_dim) {
    return n_layer * 2 * kv_region_bytes(DType::kF32, 16, n_head_kv, head_dim) / 16;
  };
  EXPECT_EQ(per_token(24, 2, 64), 24 * 1024);
  EXPECT_EQ(per_token(36, 8, 128), 288 * 1024);
  EXPECT_EQ(kv_region_bytes(DType::kQ8_0, 16, 2, 64), 16 * 2 * 64 / 32 * 34);
}

}  // namespace
}  // namespace minfer
