// Tensor conversion: the same bytes however the work is shared out, and errors that name the place.
#include "quant/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "quant/format.h"

namespace minfer::quant {
namespace {

std::vector<float> values(int64_t n) {
  std::mt19937 rng(5);
  std::normal_distribution<float> dist(0.0f, 0.1f);
  std::vector<float> v(static_cast<size_t>(n));
  for (auto& x : v) x = dist(rng);
  return v;
}

ParallelFor threads(int count) {
  return [count](int64_t n, const std::function<void(int64_t, int64_t)>& body) -> Status {
    std::vector<std::thread> pool;
    for (int t = 0; t < count; ++t) pool.emplace_back([&, t] { body(n * t / count, n * (t + 1) / count); });
    for (auto& t : pool) t.join();
    return {};
  };
}

TEST(ConvertRows, SameBytesAsRowByRowAtAnyThreadCount) {
  const int64_t rows = 5, cols = 4096 + 512;  // two pieces per row, the second one short
  const auto x = values(rows * cols);
  for (int i = 0; i <= static_cast<int>(DType::kMXFP4); ++i) {
    const auto t = static_cast<DType>(i);
    const int64_t row_bytes = dtype_row_bytes(t, cols);
    std::vector<uint8_t> want(static_cast<size_t>(rows * row_bytes));
    for (int64_t r = 0; r < rows; ++r) {
      ASSERT_TRUE(format(t).encode_row(x.data() + r * cols, want.data() + r * row_bytes, cols).ok());
    }
    for (int n_threads : {0, 1, 3, 16}) {
      std::vector<uint8_t> got(want.size() + 1, 0xEE);
      ConvertOptions options;
      if (n_threads > 0) options.parallel_for = threads(n_threads);
      ASSERT_TRUE(convert_rows(DType::kF32, x.data(), t, got.data(), rows, cols, options).ok());
      EXPECT_EQ(0, std::memcmp(want.data(), got.data(), want.size())) << dtype_info(t).name;
      EXPECT_EQ(got.back(), 0xEE);
    }
    std::vector<float> decoded(x.size()), back(x.size());
    for (int64_t r = 0; r < rows; ++r)
      format(t).decode_row(want.data() + r * row_bytes, decoded.data() + r * cols, cols);
    ASSERT_TRUE(convert_rows(t, want.data(), DType::kF32, back.data(), rows, cols).ok());
    EXPECT_EQ(0, std::memcmp(decoded.data(), back.data(), decoded.size() * sizeof(float)));
  }
}

TEST(ConvertRows, ImportanceFollowsItsColumn) {
  const int64_t rows = 3, cols = 4096 + 256;
  const auto x = values(rows * cols);
  std::vector<float> importance(static_cast<size_t>(cols));
  for (size_t i = 0; i < importance.size(); ++i) importance[i] = static_cast<float>(i % 7);
  const int64_t row_bytes = dtype_row_bytes(DType::kQ4_K, cols);
  std::vector<uint8_t> want(static_cast<size_t>(rows * row_bytes)), got(want.size());
  for (int64_t r = 0; r < rows; ++r) {
    ASSERT_TRUE(format(DType::kQ4_K)
                    .encode_row(x.data() + r * cols, want.data() + r * row_bytes, cols, importance.data())
                    .ok());
  }
  ConvertOptions options;
  options.importance = importance.data();
  ASSERT_TRUE(convert_rows(DType::kF32, x.data(), DType::kQ4_K, got.data(), rows, cols, options).ok());
  EXPECT_EQ(want, got);
  importance[4100] = -1;
  const Status s = convert_rows(DType::kF32, x.data(), DType::kQ4_K, got.data(), rows, cols, options);
  ASSERT_FALSE(s.ok());
  EXPECT_NE(s.error().message.find("column 4100"), std::string::npos) << s.error().message;
}

TEST(ConvertRows, SameTypeIsACopyOfTheBytes) {
  std::vector<uint8_t> raw(static_cast<size_t>(2 * dtype_row_bytes(DType::kQ6_K, 512)), 0xFF);  // NaN scales
  std::vector<uint8_t> out(raw.size());
  ASSERT_TRUE(convert_rows(DType::kQ6_K, raw.data(), DType::kQ6_K, out.data(), 2, 512).ok());
  EXPECT_EQ(raw, out);
}

TEST(ConvertRows, NamesTheFirstBadValue) {
  const int64_t rows = 4, cols = 8192;
  auto x = values(rows * cols);
  x[static_cast<size_t>(3 * cols + 1)] = std::numeric_limits<float>::infinity();
  x[static_cast<size_t>(1 * cols + 5000)] = std::nanf("");
  std::vector<uint8_t> out(static_cast<size_t>(rows * dtype_row_bytes(DType::kQ8_0, cols)));
  for (int n_threads : {1, 8}) {
    ConvertOptions options;
    options.parallel_for = threads(n_threads);
    const Status s = convert_rows(DType::kF32, x.data(), DType::kQ8_0, out.data(), rows, cols, options);
    ASSERT_FALSE(s.ok());
    EXPECT_NE(s.error().message.find("row 1, column 5000"), std::string::npos) << s.error().message;
  }
}

TEST(ConvertRows, RefusesBadArguments) {
  float x[64] = {};
  uint8_t out[512];
  const int64_t big = int64_t{1} << 61;
  EXPECT_FALSE(convert_rows(DType::kF32, x, DType::kQ4_0, out, 1, 33).ok());
  EXPECT_FALSE(convert_rows(DType::kF32, x, DType::kQ4_K, out, 1, 64).ok());
  EXPECT_FALSE(convert_rows(DType::kI32, x, DType::kF32, out, 1, 32).ok());
  EXPECT_FALSE(convert_rows(DType::kF32, x, DType::kI8, out, 1, 32).ok());
  EXPECT_FALSE(convert_rows(DType::kF32, x, DType::kF16, out, -1, 32).ok());
  EXPECT_FALSE(convert_rows(DType::kF32, x, DType::kF16, out, 32, big).ok());
  EXPECT_FALSE(convert_rows(DType::kF32, x, DType::kF16, out, big, 32).ok());
  EXPECT_TRUE(convert_rows(DType::kF32, x, DType::kQ4_0, out, 0, 32).ok());
  EXPECT_TRUE(convert_rows(DType::kF32, x, DType::kQ4_0, out, 5, 0).ok());
}

TEST(ConvertRows, PassesOnTheErrorOfTheThreads) {
  float x[32] = {};
  uint8_t out[64];
  ConvertOptions options;
  options.parallel_for = [](int64_t, const std::function<void(int64_t, int64_t)>&) -> Status {
    return make_error(ErrorCode::kCancelled, "stopped");
  };
  const Status s = convert_rows(DType::kF32, x, DType::kQ4_0, out, 1, 32, options);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace minfer::quant
