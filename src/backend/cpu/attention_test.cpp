// The attention kernels against the decomposed graph on the reference kernels, bit by bit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/backend.h"
#include "backend/testing/conformance.h"

namespace minfer::testing {
namespace {

struct Token {
  int32_t position, seq;
};

struct Case {
  int32_t n_head = 4, n_head_kv = 2, head_dim = 32;
  DType type_k = DType::kF16, type_v = DType::kF16;
  int32_t page_size = 32, n_kv = 512;
  int32_t window = 0;
  float softcap = 0.0f;
  std::vector<Token> tokens;
  // Every row of K and V that no token sees is filled with this instead of zero bytes.
  int fill = 0xff;  // NaN in every float type
  float amplitude = 1.0f;
  bool odd_values = false;  // infinities, NaN, zeros of both signs among the visible values
};

// All inputs of an attention node: the pages of the sequences are shuffled through a region that is half unused.
struct Node {
  Attrs attrs;
  TestTensor q, k, v, positions, seqs, table;

  Node(const Case& c, uint64_t seed) {
    Random random(seed);
    const auto n = static_cast<int64_t>(c.tokens.size());
    int32_t n_seq = 1;
    for (const Token& t : c.tokens) n_seq = std::max(n_seq, t.seq + 1);
    const int32_t pages = c.n_kv / c.page_size;
    const int64_t n_slots = int64_t{2} * n_seq * pages * c.page_size;
    attrs = {.scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim)),
             .softcap = c.softcap,
             .n_head = c.n_head,
             .n_head_kv = c.n_head_kv,
             .head_dim = c.head_dim,
             .window = c.window,
             .page_size = c.page_size,
             .n_kv = c.n_kv,
             .layer = 3};
    q = random.normal_f32({n, int64_t{c.n_head} * c.head_dim}, 2.0f * c.amplitude);
    std::vector<int32_t> order(static_cast<size_t>(2 * n_seq * pages));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    for (size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i], order[static_cast<size_t>(random.below(static_cast<int32_t>(i) + 1))]);
    order.resize(static_cast<size_t>(n_seq * pages));
    table = TestTensor::i32({n_seq, pages}, order);
    std::vector<int32_t> p, s;
    std::vector<int32_t> last(static_cast<size_t>(n_seq), -1), first(static_cast<size_t>(n_seq), c.n_kv);
    for (const Token& t : c.tokens) {
      p.push_back(t.position), s.push_back(t.seq);
      auto& hi = last[static_cast<size_t>(t.seq)];
      auto& lo = first[static_cast<size_t>(t.seq)];
      hi = std::max(hi, t.position);
      lo = std::min(lo, c.window == 0 ? 0 : std::max(0, t.position - c.window + 1));
    }
    positions = TestTensor::i32({n}, p);
    seqs = TestTensor::i32({n}, s);
    k = TestTensor::region(false, c.type_k, n_slots, c.n_head_kv, c.head_dim);
    v = TestTensor::region(true, c.type_v, n_slots, c.n_head_kv, c.head_dim);
    k.fill(static_cast<std::byte>(c.fill));
    v.fill(static_cast<std::byte>(c.fill));
    const int64_t width = int64_t{c.n_head_kv} * c.head_dim;
    for (int32_t seq = 0; seq < n_seq; ++seq) {
      std::vector<int32_t> slots;
      const auto lo = first[static_cast<size_t>(seq)], hi = last[static_cast<size_t>(seq)];
      for (int32_t at = lo; at <= hi; ++at) {
        slots.push_back(order[static_cast<size_t>(seq * pages + at / c.page_size)] * c.page_size + at % c.page_size);
      }
      if (slots.empty()) continue;
      const auto rows = static_cast<int64_t>(slots.size());
      auto slot_tensor = TestTensor::i32({rows}, slots);
      auto x = random.normal_f32({rows, width}, c.amplitude), y = random.normal_f32({rows, width});
      if (c.odd_values) {
        constexpr float kInf = std::numeric_limits<float>::infinity();
        const float odd[] = {-0.0f, 0.0f, kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), 1e-44f, -1e-44f};
        for (int i = 0; i < 6; ++i) {
          x.row(0)[random.below(static_cast<int32_t>(rows * width))] = odd[random.below(7)];
          y.row(0)[random.below(static_cast<int32_t>(rows * width))] = odd[random.below(7)];
        }
      }
      const Attrs store{.n_head_kv = c.n_head_kv, .head_dim = c.head_dim};
      EXPECT_TRUE(run_ref(Op::kKvStoreK, store, {&x, &k, &slot_tensor}).ok());
      EXPECT_TRUE(run_ref(Op::kKvStoreV, store, {&y, &v, &slot_tensor}).ok());
    }
  }

  Inputs inputs() { return {&q, &k, &v, &positions, &seqs, &table}; }
};

std::string check(const Case& c, uint64_t seed = 1) {
  Node setup(c, seed);
  return check_conformance(Op::kAttention, setup.attrs, setup.inputs());
}

std::vector<Token> run_of(int32_t first, int32_t n, int32_t seq = 0) {
  std::vector<Token> tokens;
  for (int32_t i = 0; i < n; ++i) tokens.push_back({first + i, seq});
  return tokens;
}

const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0};

TEST(CpuAttention, EveryPairOfTypes) {
  for (DType type_k : kTypes) {
    for (DType type_v : kTypes) {
      Case c{.type_k = type_k, .type_v = type_v};
      c.tokens = {{300, 0}};
      EXPECT_EQ(check(c), "") << dtype_info(type_k).name << " " << dtype_info(type_v).name;
      c.tokens = run_of(250, 13);
      EXPECT_EQ(check(c, 2), "") << dtype_info(type_k).name << " " << dtype_info(type_v).name;
    }
  }
}

TEST(CpuAttention, HeadSizesWithTails) {
  for (int32_t head_dim : {1, 5, 16, 20, 31, 48, 80, 96, 100, 128, 160, 256, 512}) {
    for (DType type : kTypes) {
      if (type == DType::kQ8_0 && head_dim % 32 != 0) continue;
      Case c{.n_head = 2, .n_head_kv = 1, .head_dim = head_dim, .type_k = type, .type_v = type};
      c.tokens = run_of(255, 3);
      EXPECT_EQ(check(c), "") << head_dim << " " << dtype_info(type).name;
    }
  }
}

TEST(CpuAttention, HeadsPerKvHead) {
  for (int32_t per_kv = 1; per_kv <= 9; ++per_kv) {
    for (DType type : {DType::kF16, DType::kQ8_0}) {
      Case c{.n_head = 2 * per_kv, .type_k = type, .type_v = type};
      c.tokens = {{290, 0}};
      EXPECT_EQ(check(c), "") << per_kv;
      c.tokens = run_of(240, 20);
      EXPECT_EQ(check(c), "") << per_kv;
    }
  }
  Case many{.n_head = 71, .n_head_kv = 1, .tokens = {{300, 0}}};
  EXPECT_EQ(check(many), "");
}

TEST(CpuAttention, EdgesOfGroupsPagesAndTiles) {
  for (int32_t page_size : {16, 48, 256}) {
    for (int32_t p : {0, 1, 14, 15, 16, 17, 47, 48, 254, 255, 256, 257, 511, 512}) {
      Case c{.page_size = page_size, .n_kv = 768, .tokens = {{p, 0}}};
      EXPECT_EQ(check(c), "") << page_size << " " << p;
      c.tokens = run_of(p, 5);
      EXPECT_EQ(check(c), "") << page_size << " " << p;
    }
  }
}

TEST(CpuAttention, Windows) {
  for (int32_t window : {1, 2, 15, 16, 17, 100, 255, 256, 257, 300, 1000}) {
    for (DType type : {DType::kF16, DType::kQ8_0}) {
      Case c{.type_k = type, .type_v = type, .n_kv = 1024, .window = window};
      c.tokens = {{600, 0}};
      EXPECT_EQ(check(c), "") << window;
      c.tokens = run_of(500, 40);
      EXPECT_EQ(check(c), "") << window;
      c.tokens = run_of(0, 30);
      EXPECT_EQ(check(c), "") << window;
    }
  }
}

TEST(CpuAttention, Softcap) {
  Case c{.softcap = 5.0f, .tokens = run_of(250, 9), .amplitude = 4.0f};
  EXPECT_EQ(check(c), "");
}

TEST(CpuAttention, BatchesOfSequences) {
  Case decode;
  for (int32_t s = 0; s < 7; ++s) decode.tokens.push_back({60 * s + 17, s});
  EXPECT_EQ(check(decode), "");
  // A batch of prefill chunks and decode tokens; positions that jump inside a sequence; the same sequence twice.
  Case mixed;
  mixed.tokens = run_of(100, 30, 1);
  mixed.tokens.push_back({511, 0});
  for (const Token& t : run_of(0, 5, 2)) mixed.tokens.push_back(t);
  mixed.tokens.push_back({3, 2});
  mixed.tokens.push_back({400, 1});
  mixed.tokens.push_back({40, 1});
  EXPECT_EQ(check(mixed), "");
  mixed.type_k = mixed.type_v = DType::kQ8_0;
  mixed.window = 70;
  EXPECT_EQ(check(mixed), "");
}

TEST(CpuAttention, DepthSplitAcrossWorkers) {
  for (int32_t p : {1023, 1024, 2500, 4095}) {
    Case c{.n_head = 3, .n_head_kv = 1, .page_size = 64, .n_kv = 4096, .tokens = {{p, 0}}};
    EXPECT_EQ(check(c), "") << p;
  }
  Case draft{.n_head = 2, .n_head_kv = 2, .n_kv = 2048, .tokens = run_of(1530, 8)};
  EXPECT_EQ(check(draft), "");
}

// So much to keep per tile that the tiles come in several waves.
TEST(CpuAttention, WavesOfTiles) {
  // 64 rows of 128 features: 33 KB per tile, 15 of 17 tiles in 512 KiB
  Case c{.n_head = 64, .n_head_kv = 1, .head_dim = 128, .page_size = 64, .n_kv = 4608, .tokens = {{4200, 0}}};
  Node setup(c, 1);
  EXPECT_EQ(check_conformance(Op::kAttention, setup.attrs, setup.inputs(), {.threads = {1}}), "");
  // pairs of a token and a head that end in different waves
  Case two{.n_head = 48,
           .n_head_kv = 2,
           .head_dim = 128,
           .page_size = 64,
           .n_kv = 2560,
           .tokens = {{2500, 0}, {300, 1}, {1900, 2}}};
  Node other(two, 2);
  EXPECT_EQ(check_conformance(Op::kAttention, other.attrs, other.inputs(), {.threads = {2}}), "");
}

TEST(CpuAttention, OddValues) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    for (DType type : kTypes) {
      Case c{.type_k = type, .type_v = type, .tokens = run_of(280, 7), .odd_values = true};
      EXPECT_EQ(check(c, seed), "") << seed << " " << dtype_info(type).name;
    }
  }
  for (float amplitude : {1e-30f, 1e10f, 1e30f}) {  // denormal products, one weight of 1, overflow
    Case c{.type_k = DType::kF32, .tokens = run_of(280, 7), .amplitude = amplitude};
    EXPECT_EQ(check(c), "") << amplitude;
  }
}

// What a token cannot see may be anything: NaN, or values that would change the sign of a zero.
TEST(CpuAttention, InvisibleRowsDoNotMatter) {
  Case c{.type_k = DType::kF32, .type_v = DType::kF32, .tokens = run_of(100, 20)};
  c.fill = 0xff;
  Node nan(c, 5);
  c.fill = 0x00;
  Node zero(c, 5);
  auto backend = make_backend({"cpu", ""});
  ASSERT_TRUE(backend.ok());
  const auto kernels = (*backend)->kernels(Op::kAttention);
  auto a = run_kernels(kernels, Op::kAttention, nan.attrs, nan.inputs());
  auto b = run_kernels(kernels, Op::kAttention, zero.attrs, zero.inputs());
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(first_difference(*a, *b), "");
  for (float x : (*a)[0].floats()) EXPECT_TRUE(std::isfinite(x));
}

// One token's answer is the same alone, in a batch and in any chunk.
TEST(CpuAttention, BatchInvariance) {
  Case c{.head_dim = 64, .tokens = run_of(0, 300)};
  Node whole(c, 9);
  auto backend = make_backend({"cpu", ""});
  ASSERT_TRUE(backend.ok());
  const auto kernels = (*backend)->kernels(Op::kAttention);
  auto all = run_kernels(kernels, Op::kAttention, whole.attrs, whole.inputs(), {.n_threads = 2});
  ASSERT_TRUE(all.ok());
  for (int32_t p : {0, 7, 16, 255, 256, 299}) {
    std::vector<float> q(whole.q.row(p), whole.q.row(p) + 256);
    auto one_q = TestTensor::f32({1, 256}, q);
    auto positions = TestTensor::i32({1}, {p}), seqs = TestTensor::i32({1}, {0});
    auto one = run_kernels(kernels, Op::kAttention, whole.attrs,
                           {&one_q, &whole.k, &whole.v, &positions, &seqs, &whole.table}, {.n_threads = 3});
    ASSERT_TRUE(one.ok());
    const std::vector<float> want((*all)[0].row(p), (*all)[0].row(p) + 256);
    EXPECT_EQ(first_difference((*one)[0], TestTensor::f32({1, 256}, want)), "") << p;
  }
}

TEST(CpuAttention, WhatIsOutsideItsLimitIsAnErrorThatNamesIt) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max(), kMin = std::numeric_limits<int32_t>::min();
  auto run = [](int32_t position, int32_t seq, int32_t page) {
    Case c{.tokens = run_of(60, 3)};
    Node setup(c, 1);
    setup.positions.view().as<int32_t>()[1] = position;
    setup.seqs.view().as<int32_t>()[1] = seq;
    setup.table.view().as<int32_t>()[1] = page;
    EXPECT_EQ(check_conformance(Op::kAttention, setup.attrs, setup.inputs()), "");
    auto backend = make_backend({"cpu", ""});
    auto r =
        run_kernels((*backend)->kernels(Op::kAttention), Op::kAttention, setup.attrs, setup.inputs(), {.n_threads = 2});
    return r.ok() ? std::string("fine") : r.error().message;
  };
  EXPECT_EQ(run(61, 0, 3), "fine");
  for (int32_t bad : {-1, 512, kMax, kMin}) {
    const std::string message = run(bad, 0, 3);
    EXPECT_NE(message.find("token 1 of layer 3: position " + std::to_string(bad)), std::string::npos) << message;
  }
  for (int32_t bad : {-1, 1, kMax, kMin}) {
    const std::string message = run(61, bad, 3);
    EXPECT_NE(message.find("sequence " + std::to_string(bad)), std::string::npos) << message;
  }
  for (int32_t bad : {-1, 32, kMax, kMin}) {
    const std::string message = run(61, 0, bad);
    EXPECT_NE(message.find("page 1 of sequence 0 is " + std::to_string(bad)), std::string::npos) << message;
  }
}

TEST(CpuAttention, ScratchIsBounded) {
  auto backend = make_backend({"cpu", ""});
  ASSERT_TRUE(backend.ok());
  const Kernel& kernel = (*backend)->kernels(Op::kAttention)[0];
  for (int64_t n : {1, 8, 512, 4096}) {
    for (int32_t n_kv : {256, 4096, 1 << 20}) {
      const Attrs attrs{.n_head = 32, .n_head_kv = 8, .head_dim = 128, .page_size = 64, .n_kv = n_kv};
      TensorView in[6] = {};
      in[0].shape = {n, 32 * 128};
      in[1].dtype = in[2].dtype = DType::kF16;
      const bool present[6] = {true, true, true, true, true, true};
      const NodeDesc node{Op::kAttention, attrs, in, {}, present};
      EXPECT_LT(kernel.scratch_bytes(node, 8), size_t{12} << 20) << n << " " << n_kv;
    }
  }
}

}  // namespace
}  // namespace minfer::testing
