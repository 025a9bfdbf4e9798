// The extreme codes a file may hold against the extreme activation codes: where products of bytes are added in 16 bits
// (AVX2's vpmaddubsw saturates), the largest sums of either sign must come out exact, -128 included.
#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/matmul/matmul_ops.h"
#include "backend/testing/run_op.h"

namespace minfer::testing {
namespace {

ThreadPool& pool() {
  static auto p = ThreadPool::create(1).value();
  return *p;
}

class MatMulExtremes : public ::testing::TestWithParam<DType> {};

TEST_P(MatMulExtremes, SumsAreExact) {
  constexpr int64_t kK = 512, kM = 17, kN = 40;
  Random random(21);
  // Every value of a block has the same magnitude, so every code is 127 or -127. Row r flips the sign every r values.
  TestTensor x = TestTensor::zeros(DType::kF32, {kN, kK});
  for (int64_t r = 0; r < kN; ++r) {
    for (int64_t i = 0; i < kK; ++i) x.row(r)[i] = r == 0 || i / r % 2 == 0 ? 1.0f : -1.0f;
  }
  for (int64_t i = 0; i < kK; ++i) x.row(3)[i] = -1.0f;
  for (int value : {0x00, 0x0f, 0x70, 0x7f, 0x80, 0x88, 0xf0, 0xff}) {
    TestTensor w = random.weight_of(GetParam(), {kM, kK}, static_cast<std::byte>(value));
    const PackedWeight packed = std::move(*cpu::pack_weight(w.view(), pool()).value());
    const auto want = run_ref(Op::kMatMul, {}, {&x, &w});
    ASSERT_TRUE(want.ok()) << want.error().message;
    for (int i = 0; i < kIsaLevelCount; ++i) {
      const auto isa = static_cast<IsaLevel>(i);
      const auto kernels = cpu::matmul_op_kernels(Op::kMatMul, isa);
      if (!isa_supported(isa) || kernels.empty()) continue;
      for (const int64_t n : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{6}, kN}) {
        TestTensor xn = TestTensor::zeros(DType::kF32, {n, kK}), wn = TestTensor::zeros(DType::kF32, {n, kM});
        std::memcpy(xn.bytes().data(), x.bytes().data(), xn.bytes().size());
        std::memcpy(wn.bytes().data(), (*want)[0].bytes().data(), wn.bytes().size());
        const auto y = run_packed_matmul(kernels[0], xn, packed.view, 1);
        ASSERT_TRUE(y.ok()) << y.error().message;
        ASSERT_EQ(first_difference(*y, wn), "") << isa_name(isa) << " n=" << n << " byte " << value;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, MatMulExtremes,
                         ::testing::Values(DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                                           DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                                           DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4),
                         [](const auto& info) { return std::string(dtype_info(info.param).name); });

}  // namespace
}  // namespace minfer::testing
