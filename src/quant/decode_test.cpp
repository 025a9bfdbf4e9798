// Decoding against the values other software gives for the same bytes (tests/data/quant, made by
// tools/make_quant_fixtures.py), and its behaviour on arbitrary bytes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "quant/blocks.h"
#include "quant/format.h"

namespace minfer::quant {
namespace {

std::string type_name(const testing::TestParamInfo<int>& info) {
  return std::string(dtype_info(static_cast<DType>(info.param)).name);
}

class Decode : public testing::TestWithParam<int> {
 protected:
  DType type() const { return static_cast<DType>(GetParam()); }
  const DTypeInfo& info() const { return dtype_info(type()); }
};

// Bits, not values: -0 differs from 0. The payload of a NaN is nobody's definition.
bool same_bits(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0; }

TEST_P(Decode, EqualsReferenceBits) {
  if (type() == DType::kF32) GTEST_SKIP() << "f32 is a copy";
  const std::string path = std::string(MINFER_SOURCE_DIR) + "/tests/data/quant/" + std::string(info().name) + ".bin";
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path;
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const size_t per_block = static_cast<size_t>(info().block_bytes) + 4 * static_cast<size_t>(info().block_size);
  ASSERT_EQ(bytes.size() % per_block, 0u);
  const size_t n_blocks = bytes.size() / per_block;
  ASSERT_GE(n_blocks, 32u);
  const size_t n = n_blocks * static_cast<size_t>(info().block_size);
  std::vector<float> want(n), got(n + 1, 12345.0f);
  std::memcpy(want.data(), bytes.data() + n_blocks * static_cast<size_t>(info().block_bytes), n * 4);
  format(type()).decode_row(bytes.data(), got.data(), static_cast<int64_t>(n));
  for (size_t i = 0; i < n; ++i) {
    ASSERT_TRUE(same_bits(got[i], want[i]))
        << info().name << " block " << i / static_cast<size_t>(info().block_size) << " value "
        << i % static_cast<size_t>(info().block_size) << ": got " << got[i] << ", want " << want[i];
  }
  EXPECT_EQ(got[n], 12345.0f) << "written past the end";
}

TEST_P(Decode, AnyBytesAtAnyAddressInPieces) {
  std::mt19937 rng(7);
  const int64_t n_blocks = 64, n = n_blocks * info().block_size;
  std::vector<uint8_t> raw(static_cast<size_t>(n_blocks * info().block_bytes) + 1);
  for (int round = 0; round < 20; ++round) {
    for (auto& b : raw) b = static_cast<uint8_t>(rng());
    const uint8_t* odd = raw.data() + 1;
    std::vector<float> whole(static_cast<size_t>(n)), piece(static_cast<size_t>(info().block_size));
    format(type()).decode_row(odd, whole.data(), n);
    for (int64_t b = 0; b < n_blocks; ++b) {
      format(type()).decode_row(odd + b * info().block_bytes, piece.data(), info().block_size);
      for (int i = 0; i < info().block_size; ++i) {
        ASSERT_TRUE(same_bits(piece[static_cast<size_t>(i)], whole[static_cast<size_t>(b * info().block_size + i)]));
      }
    }
  }
}

TEST_P(Decode, EmptyRow) {
  format(type()).decode_row(nullptr, nullptr, 0);
  EXPECT_TRUE(format(type()).encode_row(nullptr, nullptr, 0).ok());
}

INSTANTIATE_TEST_SUITE_P(Formats, Decode, testing::Range(0, static_cast<int>(DType::kMXFP4) + 1), type_name);

TEST(Formats, OnlyFloatTypesAndBlocks) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(find_format(t) != nullptr, t <= DType::kMXFP4) << dtype_info(t).name;
    if (find_format(t) != nullptr) {
      EXPECT_EQ(format(t).dtype, t);
    }
  }
}

TEST(Blocks, SizesAgreeWithTheDTypeTable) {
  const std::pair<DType, size_t> sizes[] = {
      {DType::kQ4_0, sizeof(BlockQ4_0)},   {DType::kQ4_1, sizeof(BlockQ4_1)},     {DType::kQ5_0, sizeof(BlockQ5_0)},
      {DType::kQ5_1, sizeof(BlockQ5_1)},   {DType::kQ8_0, sizeof(BlockQ8_0)},     {DType::kQ2_K, sizeof(BlockQ2_K)},
      {DType::kQ3_K, sizeof(BlockQ3_K)},   {DType::kQ4_K, sizeof(BlockQ4_K)},     {DType::kQ5_K, sizeof(BlockQ5_K)},
      {DType::kQ6_K, sizeof(BlockQ6_K)},   {DType::kIQ4_NL, sizeof(BlockIQ4_NL)}, {DType::kIQ4_XS, sizeof(BlockIQ4_XS)},
      {DType::kMXFP4, sizeof(BlockMXFP4)},
  };
  for (const auto& [t, size] : sizes) EXPECT_EQ(static_cast<size_t>(dtype_info(t).block_bytes), size);
}

TEST(Blocks, ScalesOfK4PackAndUnpack) {
  std::mt19937 rng(3);
  for (int round = 0; round < 200; ++round) {
    uint8_t sc[8], m[8], packed[12], sc2[8], m2[8];
    for (int i = 0; i < 8; ++i) sc[i] = rng() % 64, m[i] = rng() % 64;
    pack_scales_k4(sc, m, packed);
    unpack_scales_k4(packed, sc2, m2);
    EXPECT_EQ(0, std::memcmp(sc, sc2, 8));
    EXPECT_EQ(0, std::memcmp(m, m2, 8));
  }
}

}  // namespace
}  // namespace minfer::quant
