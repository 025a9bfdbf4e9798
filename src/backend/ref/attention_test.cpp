// KV stores and attention against float64, over pages, sequences, tiles, windows and all cache types; every way an
// input can point outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/ref/kv.h"
#include "backend/ref/q8a.h"
#include "backend/testing/run_op.h"
#include "base/f16.h"

namespace minfer {
namespace {

using testing::first_difference;
using ::testing::HasSubstr;
using testing::Random;
using testing::run_ref;
using testing::TestTensor;

constexpr double kEps = 0x1p-24;
constexpr DType kCacheTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0};

// A filled cache of several sequences whose pages are shuffled over the region.
struct World {
  Attrs attrs;
  int64_t n_slots = 0;
  TestTensor region_k, region_v, table;

  World(DType type_k, DType type_v, int32_t n_head, int32_t n_head_kv, int32_t head_dim, std::vector<int32_t> lengths,
        uint64_t seed) {
    Random rng(seed);
    attrs.n_head = n_head;
    attrs.n_head_kv = n_head_kv;
    attrs.head_dim = head_dim;
    attrs.page_size = 16;
    attrs.scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
    const int32_t longest = *std::max_element(lengths.begin(), lengths.end());
    attrs.n_kv = (longest + 255) / 256 * 256;
    const int32_t pages = (longest + 15) / 16, n_seq = static_cast<int32_t>(lengths.size());
    std::vector<int32_t> free;
    for (int32_t p = 0; p < pages * n_seq; ++p) free.push_back(p);
    for (size_t i = free.size() - 1; i > 0; --i)
      std::swap(free[i], free[static_cast<size_t>(rng.below(static_cast<int32_t>(i) + 1))]);
    n_slots = 16 * static_cast<int64_t>(free.size());
    table = TestTensor::i32({n_seq, pages}, free);
    region_k = TestTensor::region(false, type_k, n_slots, n_head_kv, head_dim);
    region_v = TestTensor::region(true, type_v, n_slots, n_head_kv, head_dim);
    for (int32_t s = 0; s < n_seq; ++s) {
      const int32_t n = lengths[static_cast<size_t>(s)];
      std::vector<int32_t> slots;
      for (int32_t p = 0; p < n; ++p) slots.push_back(slot(s, p));
      auto slot_ids = TestTensor::i32({n}, slots);
      auto k = rng.normal_f32({n, n_head_kv * head_dim}), v = rng.normal_f32({n, n_head_kv * head_dim});
      EXPECT_TRUE(run_ref(Op::kKvStoreK, attrs, {&k, &region_k, &slot_ids}, {.n_threads = 2}).ok());
      EXPECT_TRUE(run_ref(Op::kKvStoreV, attrs, {&v, &region_v, &slot_ids}, {.n_threads = 2}).ok());
    }
  }

  int32_t slot(int64_t seq, int64_t p) const {
    return table.view().row<int32_t>(seq)[p / 16] * 16 + static_cast<int32_t>(p % 16);
  }

  Result<std::vector<TestTensor>> attend(TestTensor& q, TestTensor& positions, TestTensor& seqs, int threads = 1) {
    return run_ref(Op::kAttention, attrs, {&q, &region_k, &region_v, &positions, &seqs, &table},
                   {.n_threads = threads});
  }

  double k_at(int64_t slot, int64_t h, int64_t i) const {
    const ref::KvRegion r(region_k.view(), attrs);
    return r.dtype == DType::kQ8_0 ? static_cast<double>(r.k_scale(slot, h, i)) * r.k_code(slot, h, i)
                                   : r.k_value(slot, h, i);
  }
  double v_at(int64_t slot, int64_t h, int64_t i) const {
    const ref::KvRegion r(region_v.view(), attrs);
    return r.dtype == DType::kQ8_0 ? static_cast<double>(r.v_scale(slot, h, i)) * r.v_code(slot, h, i)
                                   : r.v_value(slot, h, i);
  }
};

// One head's output in float64 from the values the cache holds, with a bound on the reference's error.
struct Oracle {
  std::vector<double> out;
  double bound;
};
Oracle attend_f64(const World& w, const float* q, int64_t seq, int64_t pos, int64_t head) {
  const Attrs& a = w.attrs;
  const int64_t hk = head / (a.n_head / a.n_head_kv), lo = ref::visible_lo(pos, a.window), d = a.head_dim;
  std::vector<double> query(q, q + d);
  if (w.region_k.view().dtype == DType::kQ8_0) {  // the query is quantized by definition
    std::vector<ref::Q8aBlock> b(static_cast<size_t>(d / 32));
    ref::quantize_q8a(q, d, b.data());
    for (int64_t i = 0; i < d; ++i)
      query[static_cast<size_t>(i)] =
          static_cast<double>(b[static_cast<size_t>(i / 32)].d) * b[static_cast<size_t>(i / 32)].q[i % 32];
  }
  std::vector<double> scores;
  double worst_score = 0, max = -INFINITY, v_max = 0;
  for (int64_t j = lo; j <= pos; ++j) {
    double dot = 0, magnitude = 0;
    for (int64_t i = 0; i < d; ++i) {
      const double term = query[static_cast<size_t>(i)] * w.k_at(w.slot(seq, j), hk, i);
      dot += term;
      magnitude += std::fabs(term);
    }
    double s = dot * static_cast<double>(a.scale);
    if (a.softcap > 0) s = static_cast<double>(a.softcap) * std::tanh(s / static_cast<double>(a.softcap));
    scores.push_back(s);
    max = std::max(max, s);
    // head_dim roundings of the dot product, one of the scale; softcap: 16 eps of the cap
    worst_score = std::max(worst_score, static_cast<double>(d + 2) * kEps * magnitude * static_cast<double>(a.scale) +
                                            16 * kEps * static_cast<double>(a.softcap));
  }
  double sum = 0;
  std::vector<double> out(static_cast<size_t>(d), 0.0);
  for (size_t j = 0; j < scores.size(); ++j) {
    const double e = std::exp(scores[j] - max);
    sum += e;
    for (int64_t i = 0; i < d; ++i) {
      const double v = w.v_at(w.slot(seq, lo + static_cast<int64_t>(j)), hk, i);
      out[static_cast<size_t>(i)] += e * v;
      v_max = std::max(v_max, std::fabs(v));
    }
  }
  for (double& o : out) o /= sum;
  // A weight is off by its score's error, 5 eps of exp, the rounding of its argument (at most 32 here) and that of two
  // merges per tile; sums of n terms add n eps each, numerator and denominator alike.
  const double n = static_cast<double>(scores.size()), tiles = static_cast<double>(pos / 256 + 1);
  const double relative = 2 * (2 * worst_score + (5 + 32 + n + tiles * (2 * (5 + 32) + 3)) * kEps) + 2 * kEps;
  return {out, relative * v_max};
}

void check_world(World& w, const std::vector<int32_t>& seqs, const std::vector<int32_t>& positions, uint64_t seed) {
  Random rng(seed);
  const auto n = static_cast<int64_t>(seqs.size());
  auto q = rng.normal_f32({n, int64_t{w.attrs.n_head} * w.attrs.head_dim});
  auto p = TestTensor::i32({n}, positions), s = TestTensor::i32({n}, seqs);
  auto out = w.attend(q, p, s);
  ASSERT_TRUE(out.ok()) << out.error().message;
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t h = 0; h < w.attrs.n_head; ++h) {
      const int64_t at = h * w.attrs.head_dim;
      const Oracle o = attend_f64(w, q.row(t) + at, seqs[static_cast<size_t>(t)], positions[static_cast<size_t>(t)], h);
      for (int64_t i = 0; i < w.attrs.head_dim; ++i) {
        ASSERT_NEAR((*out)[0].row(t)[at + i], o.out[static_cast<size_t>(i)], o.bound)
            << "token " << t << " head " << h << " value " << i;
      }
    }
  }
  auto threads = w.attend(q, p, s, 3);
  ASSERT_TRUE(threads.ok());
  EXPECT_EQ(first_difference(*threads, *out), "");
}

TEST(RefAttention, AllCacheTypesAgainstFloat64) {
  for (DType k : kCacheTypes) {
    for (DType v : {k, DType::kF16}) {
      World w(k, v, 4, 2, 32, {70, 300, 5}, 7);
      check_world(w, {0, 0, 1, 1, 1, 2}, {0, 69, 255, 256, 299, 4}, 8);
    }
  }
}

TEST(RefAttention, OddHeadSizesAndGroups) {
  for (int32_t d : {5, 20, 33}) {
    World w(DType::kF32, DType::kBF16, 6, 2, d, {40}, 9);
    check_world(w, {0, 0, 0}, {0, 15, 39}, 10);
  }
  World one(DType::kF16, DType::kF16, 3, 1, 8, {20}, 11);
  check_world(one, {0}, {19}, 12);
}

TEST(RefAttention, WindowsAndSoftcap) {
  for (int32_t window : {1, 7, 256, 300}) {
    World w(DType::kF16, DType::kF16, 2, 2, 16, {600}, 13);
    w.attrs.window = window;
    w.attrs.softcap = window == 7 ? 5.0f : 0.0f;
    check_world(w, {0, 0, 0, 0, 0}, {0, 255, 256, 511, 599}, 14);
  }
}

TEST(RefAttention, BitsDoNotDependOnTheBatch) {
  World w(DType::kQ8_0, DType::kQ8_0, 4, 2, 32, {400, 100}, 15);
  Random rng(16);
  auto q = rng.normal_f32({3, 128});
  auto p = TestTensor::i32({3}, {399, 99, 257}), s = TestTensor::i32({3}, {0, 1, 0});
  auto all = w.attend(q, p, s);
  ASSERT_TRUE(all.ok());
  for (int64_t t = 0; t < 3; ++t) {
    auto q1 = TestTensor::f32({1, 128}, std::vector<float>(q.row(t), q.row(t) + 128));
    auto p1 = TestTensor::i32({1}, {p.ints()[static_cast<size_t>(t)]}),
         s1 = TestTensor::i32({1}, {s.ints()[static_cast<size_t>(t)]});
    auto one = w.attend(q1, p1, s1);
    ASSERT_TRUE(one.ok());
    EXPECT_EQ(first_difference((*one)[0],
                               TestTensor::f32({1, 128}, std::vector<float>((*all)[0].row(t), (*all)[0].row(t) + 128))),
              "");
  }
}

TEST(RefAttention, InvisiblePositionsDoNotMatterWhateverTheyHold) {
  World w(DType::kF32, DType::kF32, 2, 1, 8, {40}, 17);
  w.attrs.window = 10;
  Random rng(18);
  auto q = rng.normal_f32({1, 16});
  auto p = TestTensor::i32({1}, {30}), s = TestTensor::i32({1}, {0});
  auto before = w.attend(q, p, s);
  ASSERT_TRUE(before.ok());
  for (int32_t position : {20, 31}) {  // just outside on both sides
    auto nan = TestTensor::f32({1, 8}, std::vector<float>(8, std::numeric_limits<float>::quiet_NaN()));
    auto slot = TestTensor::i32({1}, {w.slot(0, position)});
    ASSERT_TRUE(run_ref(Op::kKvStoreK, w.attrs, {&nan, &w.region_k, &slot}).ok());
    ASSERT_TRUE(run_ref(Op::kKvStoreV, w.attrs, {&nan, &w.region_v, &slot}).ok());
  }
  auto after = w.attend(q, p, s);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(first_difference(*after, *before), "");
  // pages outside the window may point anywhere
  w.table.view().row<int32_t>(0)[0] = 1 << 30;
  EXPECT_TRUE(w.attend(q, p, s).ok());
}

TEST(RefAttention, SoftmaxStatsOfEveryTile) {
  const float inf = std::numeric_limits<float>::infinity();
  TestTensor scores = TestTensor::zeros(DType::kF32, {1, 1, 768});
  for (int64_t j = 0; j < 768; ++j) scores.row(0)[j] = static_cast<float>(j % 7);
  auto p = TestTensor::i32({1}, {300});
  Attrs a;
  a.window = 100;  // sees 201..300: tiles 0 and 1
  auto w = run_ref(Op::kAttnSoftmax, a, {&scores, &p});
  ASSERT_TRUE(w.ok());
  const float* row = (*w)[0].row(0);
  EXPECT_EQ(row[200], 0.0f);
  EXPECT_EQ(row[301], 0.0f);
  EXPECT_EQ(row[768 + 0], 6.0f);
  EXPECT_EQ(row[768 + 2], 6.0f);
  EXPECT_EQ(row[768 + 4], -inf);
  EXPECT_EQ(row[768 + 5], 0.0f);
  double sum = 0;
  for (int j = 201; j < 256; ++j) sum += std::exp(j % 7 - 6.0);
  EXPECT_NEAR(row[768 + 1], sum, 60 * kEps * sum);
}

TEST(RefAttention, PointersOutsideAreErrorsThatNameThem) {
  World w(DType::kF16, DType::kF16, 2, 1, 8, {40}, 19);
  w.attrs.layer = 3;
  Random rng(20);
  auto q = rng.normal_f32({1, 16});
  const auto message = [&](int32_t position, int32_t seq) {
    auto p = TestTensor::i32({1}, {position}), s = TestTensor::i32({1}, {seq});
    auto out = w.attend(q, p, s);
    EXPECT_FALSE(out.ok());
    if (out.ok()) return std::string();
    EXPECT_EQ(out.error().code, ErrorCode::kOutOfRange);
    return out.error().message;
  };
  EXPECT_THAT(message(256, 0), HasSubstr("[attn_scores] token 0 of layer 3: position 256 is outside 0..255"));
  EXPECT_THAT(message(-1, 0), HasSubstr("position -1"));
  EXPECT_THAT(message(48, 0), HasSubstr("needs page 3, the block table has 3"));
  EXPECT_THAT(message(5, 1), HasSubstr("sequence 1 is outside the 1 rows"));
  EXPECT_THAT(message(5, -1), HasSubstr("sequence -1"));
  w.table.view().row<int32_t>(0)[1] = 3;
  EXPECT_THAT(message(20, 0),
              HasSubstr("page 1 of sequence 0 is 3, so position 20 lies at slot 52 of a region of 48 slots"));
  w.table.view().row<int32_t>(0)[1] = -1;
  EXPECT_THAT(message(16, 0), HasSubstr("page 1 of sequence 0 is -1"));
  EXPECT_TRUE(message(16, 0).find("layer 3") != std::string::npos);
}

TEST(RefKvStore, SlotOutsideWritesNothingOfThatToken) {
  Attrs a;
  a.n_head_kv = 1;
  a.head_dim = 8;
  a.layer = 5;
  auto x = TestTensor::f32({1, 8}, std::vector<float>(8, 1.0f));
  for (bool is_v : {false, true}) {
    for (int32_t bad : {16, -1, std::numeric_limits<int32_t>::max()}) {
      TestTensor region = TestTensor::region(is_v, DType::kF32, 16, 1, 8);
      const TestTensor before = region;
      auto slots = TestTensor::i32({1}, {bad});
      auto out = run_ref(is_v ? Op::kKvStoreV : Op::kKvStoreK, a, {&x, &region, &slots});
      ASSERT_FALSE(out.ok());
      EXPECT_EQ(out.error().code, ErrorCode::kOutOfRange);
      EXPECT_THAT(out.error().message,
                  HasSubstr(fmt::format("of layer 5: slot {} is outside the region of 16 slots", bad)));
      EXPECT_EQ(first_difference(region, before), "");
    }
  }
}

TEST(RefKvStore, ValuesComeBackRounded) {
  Random rng(21);
  for (DType t : kCacheTypes) {
    World w(t, t, 2, 2, 64, {1}, 22);
    auto x = rng.normal_f32({1, 128});
    auto slot = TestTensor::i32({1}, {7});
    ASSERT_TRUE(run_ref(Op::kKvStoreK, w.attrs, {&x, &w.region_k, &slot}).ok());
    ASSERT_TRUE(run_ref(Op::kKvStoreV, w.attrs, {&x, &w.region_v, &slot}).ok());
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t i = 0; i < 64; ++i) {
        const float v = x.row(0)[h * 64 + i];
        double want = v, bound = 0;
        if (t == DType::kF16) want = f16_to_f32(f32_to_f16(v));
        if (t == DType::kBF16) want = bf16_to_f32(f32_to_bf16(v));
        if (t == DType::kQ8_0) {
          const float* block = x.row(0) + h * 64 + i / 32 * 32;
          const double d = static_cast<double>(ref::amax_32(block)) / 127;
          bound = d * (0.5 + 127 * 0x1p-11 + 1e-4);  // half a step, and the f16 rounding of the scale times the code
        }
        EXPECT_NEAR(w.k_at(7, h, i), want, bound) << dtype_info(t).name;
        EXPECT_NEAR(w.v_at(7, h, i), want, bound) << dtype_info(t).name;
      }
    }
  }
}

TEST(RefKvStore, Q8EdgeBlocks) {
  float x[32] = {};
  EXPECT_EQ(ref::encode_kv_q8(x).d, 0);
  x[4] = 0x1p-101f;
  EXPECT_EQ(ref::encode_kv_q8(x).q[4], 0);
  x[4] = -2.54f;
  EXPECT_EQ(ref::encode_kv_q8(x).q[4], -127);
  EXPECT_EQ(ref::encode_kv_q8(x).d, f32_to_f16(2.54f / 127.0f));
  x[9] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ref::encode_kv_q8(x).d, 0x7e00);
  EXPECT_EQ(ref::encode_kv_q8(x).q[4], 0);
}

TEST(RefRopeStore, IsItsParts) {
  Random rng(23);
  for (bool with_q : {true, false}) {
    World w(DType::kQ8_0, DType::kF16, 4, 2, 32, {1}, 24);
    World parts(DType::kQ8_0, DType::kF16, 4, 2, 32, {1}, 24);
    Attrs a = w.attrs;
    a.eps = 1e-6f;
    auto q = rng.normal_f32({2, 128}), k = rng.normal_f32({2, 64}), v = rng.normal_f32({2, 64}),
         table = rng.normal_f32({2, 32});
    auto q_norm = rng.normal_f32({32}), k_norm = rng.normal_f32({32});
    auto slots = TestTensor::i32({2}, {9, 2});
    auto out = run_ref(
        Op::kRopeStore, a,
        {with_q ? &q : nullptr, &k, &v, with_q ? &q_norm : nullptr, &k_norm, &table, &w.region_k, &w.region_v, &slots});
    ASSERT_TRUE(out.ok()) << out.error().message;
    Attrs norm;
    norm.eps = 1e-6f;
    norm.group = 32;
    auto qn = run_ref(Op::kRmsNormMul, norm, {&q, &q_norm}), kn = run_ref(Op::kRmsNormMul, norm, {&k, &k_norm});
    auto qr = run_ref(Op::kRope, a, {&(*qn)[0], &table}), kr = run_ref(Op::kRope, a, {&(*kn)[0], &table});
    ASSERT_TRUE(run_ref(Op::kKvStoreK, a, {&(*kr)[0], &parts.region_k, &slots}).ok());
    ASSERT_TRUE(run_ref(Op::kKvStoreV, a, {&v, &parts.region_v, &slots}).ok());
    EXPECT_EQ(first_difference(w.region_k, parts.region_k), "");
    EXPECT_EQ(first_difference(w.region_v, parts.region_v), "");
    if (with_q) {
      EXPECT_EQ(first_difference(*out, *qr), "");
    } else {
      EXPECT_TRUE(out->empty());
    }
  }
}

}  // namespace
}  // namespace minfer
