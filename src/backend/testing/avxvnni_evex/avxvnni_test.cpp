// The AVX-VNNI kernels, in the encoding this processor may have, against the reference: every format, tile width, row
// tail and segment, bit by bit. Where the processor has the VEX encoding too, the other tests run the real table.
#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/matmul/dense.h"
#include "backend/cpu/pack.h"
#include "backend/testing/avxvnni_evex/tables.h"
#include "backend/testing/run_op.h"
#include "base/cpu_info.h"

namespace minfer::testing {
namespace {

const cpu::MatmulKernels& table() {
  static const cpu::MatmulKernels kernels = [] {
    cpu::MatmulKernels k = {};
    fill_matmul_kernels_avxvnni_evex(&k);
    return k;
  }();
  return kernels;
}

size_t scratch_bytes(const NodeDesc& node, int n_threads) { return cpu::dense_scratch(table(), node, n_threads); }
void run_dense(const KernelArgs& args, Worker& worker) { cpu::run_dense(table(), Op::kMatMul, args, worker); }

const Kernel kKernel = {"matmul_packed", "avxvnni", cpu::accept_dense, run_dense, scratch_bytes};

ThreadPool& pool() {
  static auto p = ThreadPool::create(2).value();
  return *p;
}

bool runnable() { return isa_supported(IsaLevel::kAvx512); }

class AvxVnniMatMul : public ::testing::TestWithParam<DType> {};

TEST_P(AvxVnniMatMul, GivesTheReferencesBits) {
  if (!runnable()) GTEST_SKIP() << "no AVX-512 VNNI here";
  const DType t = GetParam();
  const int64_t block = dtype_info(t).block_size;
  Random random(3);
  for (const int64_t k : {block, 4 * block, int64_t{1024} + block, int64_t{2048} + 2 * block}) {
    for (const int64_t m : {1, 8, 9, 16, 33}) {
      for (const bool raw : {false, true}) {  // raw: every byte a file may hold
        TestTensor w = raw ? random.raw_weight(t, {m, k}) : random.weight(t, {m, k});
        const PackedWeight packed = std::move(*cpu::pack_weight(w.view(), pool()).value());
        TestTensor x = random.normal_f32({41, k}, 3.0f);
        auto want = run_ref(Op::kMatMul, {}, {&x, &w}, {.n_threads = 2});
        ASSERT_TRUE(want.ok()) << want.error().message;
        for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 11, 41}) {
          TestTensor xn = TestTensor::zeros(DType::kF32, {n, k}), wn = TestTensor::zeros(DType::kF32, {n, m});
          std::memcpy(xn.bytes().data(), x.bytes().data(), xn.bytes().size());
          std::memcpy(wn.bytes().data(), (*want)[0].bytes().data(), wn.bytes().size());
          const auto y = run_packed_matmul(kKernel, xn, packed.view, 2);
          ASSERT_TRUE(y.ok()) << y.error().message;
          ASSERT_EQ(first_difference(*y, wn), "") << "n=" << n << " m=" << m << " k=" << k << " raw=" << raw;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, AvxVnniMatMul,
                         ::testing::Values(DType::kF32, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                           DType::kQ8_0, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
                                           DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4),
                         [](const auto& info) { return std::string(dtype_info(info.param).name); });

// Scores over q8_0 keys are all that differs from AVX2's attention. Keys of every byte, -128 included.
TEST(AvxVnniAttention, ScoresOverInt8Keys) {
  if (!runnable()) GTEST_SKIP() << "no AVX-512 VNNI here";
  Random random(4);
  for (const int64_t head_dim : {32, 64, 128}) {
    const int64_t block_bytes = head_dim / 32 * 544, blocks = head_dim / 32;
    for (int n_rows = 1; n_rows <= 7; ++n_rows) {
      TestTensor k = TestTensor::zeros(DType::kI8, {16 * block_bytes});
      for (std::byte& b : k.bytes()) b = static_cast<std::byte>(random.below(256));
      for (int g = 0; g < 16; ++g) {
        for (int64_t b = 0; b < blocks; ++b) {
          for (int i = 0; i < 16; ++i) {
            const auto scale = static_cast<uint16_t>(0x2000 + random.below(0x1000));
            std::memcpy(k.bytes().data() + g * block_bytes + b * 544 + 2 * i, &scale, 2);
          }
        }
      }
      std::vector<int8_t> codes(static_cast<size_t>(n_rows * head_dim));
      std::vector<int32_t> sums(static_cast<size_t>(n_rows * blocks), 0), begin(7, 0), end(7, 256);
      std::vector<float> d(sums.size()), m(7), l(7);
      for (size_t i = 0; i < codes.size(); ++i) {
        codes[i] = static_cast<int8_t>(i % 5 == 0 ? -127 : i % 5 == 1 ? 127 : random.below(255) - 127);
        sums[i / 32] += codes[i];
      }
      for (float& x : d) x = random.normal();
      cpu::AttnTile t{};
      t.k_bytes = t.v_bytes = block_bytes;
      for (int g = 0; g < 16; ++g) t.k[g] = t.v[g] = k.bytes().data() + g * block_bytes;
      t.head_dim = head_dim;
      t.n_rows = n_rows;
      t.group_begin = 1, t.group_end = 16;
      t.begin = begin.data(), t.end = end.data();
      t.q_codes = codes.data(), t.q_d = d.data(), t.q_sum = sums.data();
      t.m = m.data(), t.l = l.data();
      TestTensor want = TestTensor::zeros(DType::kF32, {n_rows, 256}), got = want;
      t.s = want.row(0);
      cpu::kAttnGeneric.scores[3](t);
      t.s = got.row(0);
      kAttnAvxVnniEvex.scores[3](t);
      EXPECT_EQ(first_difference(got, want), "") << head_dim << " " << n_rows;
      EXPECT_TRUE(got.guards_intact());
    }
  }
}

}  // namespace
}  // namespace minfer::testing
