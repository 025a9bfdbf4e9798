// Quality and edges of the encoders. Bounds on the error are derived from the step size each block would have without
// any search; the search must not be worse than rounding to that step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/f16.h"
#include "quant/blocks.h"
#include "quant/format.h"

namespace minfer::quant {
namespace {

constexpr int64_t kN = 64 * 256;

std::string type_name(const testing::TestParamInfo<int>& info) {
  return std::string(dtype_info(static_cast<DType>(info.param)).name);
}

std::vector<float> normal_values(int64_t n, unsigned seed, float sigma = 0.02f) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> dist(0.0f, sigma);
  std::vector<float> v(static_cast<size_t>(n));
  for (auto& x : v) x = dist(rng);
  return v;
}

std::vector<uint8_t> encode(DType t, const std::vector<float>& x, const float* importance = nullptr) {
  std::vector<uint8_t> blocks(static_cast<size_t>(dtype_row_bytes(t, static_cast<int64_t>(x.size()))), 0xAA);
  const Status s = format(t).encode_row(x.data(), blocks.data(), static_cast<int64_t>(x.size()), importance);
  EXPECT_TRUE(s.ok()) << s.error().message;
  return blocks;
}

std::vector<float> round_trip(DType t, const std::vector<float>& x, const float* importance = nullptr) {
  const auto blocks = encode(t, x, importance);
  std::vector<float> y(x.size());
  format(t).decode_row(blocks.data(), y.data(), static_cast<int64_t>(x.size()));
  return y;
}

double squared_error(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
  return sum;
}

// How a format rounds without a search: `sub` values share a scale; the step is peak / levels (symmetric) or
// (max - min(0, min)) / levels (affine; for q4_1 and q5_1 the plain range, which is the same for values of both signs).
struct Step {
  int sub;
  double levels;
  bool affine;
};

Step step_of(DType t) {
  switch (t) {
    case DType::kQ4_0: return {32, 8, false};
    case DType::kQ4_1: return {32, 15, true};
    case DType::kQ5_0: return {32, 16, false};
    case DType::kQ5_1: return {32, 31, true};
    case DType::kQ8_0: return {32, 127, false};
    case DType::kQ2_K: return {16, 3, true};
    case DType::kQ3_K: return {16, 4, false};
    case DType::kQ4_K: return {32, 15, true};
    case DType::kQ5_K: return {32, 31, true};
    case DType::kQ6_K: return {16, 32, false};
    // Uneven levels made for such values: better than the same number of even ones.
    case DType::kIQ4_NL:
    case DType::kIQ4_XS: return {32, 8, false};
    default: return {0, 0, false};
  }
}

// Sum over sub-blocks of n * step^2 / 12, the squared error of rounding to an even grid.
double step_error(const std::vector<float>& x, const Step& step) {
  double sum = 0;
  for (size_t b = 0; b < x.size(); b += static_cast<size_t>(step.sub)) {
    double lo = 0, hi = 0;
    for (int i = 0; i < step.sub; ++i) {
      lo = std::min(lo, double{x[b + static_cast<size_t>(i)]});
      hi = std::max(hi, double{x[b + static_cast<size_t>(i)]});
    }
    const double s = (step.affine ? hi - lo : std::max(-lo, hi)) / step.levels;
    sum += step.sub * s * s / 12;
  }
  return sum;
}

class Encode : public testing::TestWithParam<int> {
 protected:
  DType type() const { return static_cast<DType>(GetParam()); }
  const DTypeInfo& info() const { return dtype_info(type()); }
};

TEST_P(Encode, NormalValuesWithinTheStepBound) {
  const auto x = normal_values(kN, 11);
  const auto y = round_trip(type(), x);
  double xx = 0;
  for (float v : x) xx += double{v} * v;
  const double rmse = std::sqrt(squared_error(x, y) / xx);
  RecordProperty("relative_rmse", std::to_string(rmse));
  double bound = 0;
  switch (type()) {
    case DType::kF32: bound = 0; break;
    // Half a unit in the last place, uniform: step 2^-10 (2^-7) of the power of two below x, so at most x * step /
    // sqrt(12).
    case DType::kF16: bound = 0x1p-10 / std::sqrt(12); break;
    case DType::kBF16: bound = 0x1p-7 / std::sqrt(12); break;
    // One mantissa bit: a step of at most |x| / 2, or half the smallest step near zero, and the top cut by up to 1/4.
    case DType::kMXFP4: bound = 0.5 / std::sqrt(12); break;
    // Rounded sub-scales and f16 scales add their own error: below 1/15 of a step for 4-bit ones.
    default: bound = 1.02 * std::sqrt(step_error(x, step_of(type())) / xx);
  }
  EXPECT_LE(rmse, bound) << info().name;
}

TEST_P(Encode, OutliersAndSparseValues) {
  auto x = normal_values(kN, 12);
  for (size_t i = 0; i < x.size(); i += 97) x[i] *= 40;
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 5 == 0 ? 0 : x[i];
  double peak_error = 0;
  const auto y = round_trip(type(), x);
  for (size_t b = 0; b < x.size(); b += 256) {
    double peak = 0;
    for (size_t i = b; i < b + 256; ++i) peak = std::max(peak, std::fabs(double{x[i]}));
    for (size_t i = b; i < b + 256; ++i) peak_error = std::max(peak_error, std::fabs(double{x[i]} - y[i]) / peak);
  }
  // No value may be off by more than half the widest step of two bits, or the cut of the top that a search allows.
  EXPECT_LE(peak_error, 0.34) << info().name;
}

TEST_P(Encode, ZerosStayZeros) {
  const std::vector<float> x(512, 0.0f);
  for (float v : round_trip(type(), x)) EXPECT_EQ(v, 0.0f);
}

TEST_P(Encode, ConstantsTinyAndLargeValues) {
  const float limit = format(type()).max_abs;
  for (float c : {1.0f, -1.0f, 1e-3f, -3e4f, limit, -limit, 0.5f * limit}) {
    const std::vector<float> x(256, c);
    for (float v : round_trip(type(), x)) {
      ASSERT_TRUE(std::isfinite(v)) << info().name << " " << c;
      // A scale can be put on a constant as well as its bits allow: half a unit of a sub-scale that may be as low as 25
      // of 31 (iq4_xs with a subnormal d). mxfp4 has powers of two only: 5 lies between its levels 4 and 6.
      ASSERT_NEAR(v / c, 1.0, type() == DType::kMXFP4 ? 0.2001 : 0.02) << info().name << " " << c;
    }
  }
  // Alternating signs at the limit use both ends of the range.
  std::vector<float> both(256);
  for (size_t i = 0; i < both.size(); ++i) both[i] = i % 2 ? limit : -limit;
  for (float v : round_trip(type(), both)) ASSERT_TRUE(std::isfinite(v)) << info().name;
  // Around and below the smallest f16 scale; zero is a fair answer, NaN is not.
  for (float c : {1e-5f, 1e-7f, 3e-8f, 1e-10f, 1e-38f, 1e-45f}) {
    auto tiny = normal_values(256, 13, 1.0f);
    for (auto& v : tiny) v *= c;
    const auto y = round_trip(type(), tiny);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_TRUE(std::isfinite(y[i])) << info().name << " " << c;
      ASSERT_LE(std::fabs(y[i] - tiny[i]), 3 * c + 0x1p-23f * 16) << info().name << " " << c;
    }
  }
}

TEST_P(Encode, RefusesWhatItCannotStore) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<uint8_t> out(static_cast<size_t>(dtype_row_bytes(type(), 512)), 0x5C);
  for (float bad : {inf, -inf, nan}) {
    auto x = normal_values(512, 14);
    x[300] = bad;
    const Status s = format(type()).encode_row(x.data(), out.data(), 512);
    EXPECT_EQ(s.ok(), !info().quantized) << info().name;
    if (!s.ok()) {
      EXPECT_NE(s.error().message.find("column 300"), std::string::npos) << s.error().message;
      EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](uint8_t b) { return b == 0x5C; }));
    } else {
      std::vector<float> y(512);
      format(type()).decode_row(out.data(), y.data(), 512);
      EXPECT_TRUE(std::isnan(bad) ? std::isnan(y[300]) : y[300] == bad);
    }
  }
  const float limit = format(type()).max_abs;
  if (limit < std::numeric_limits<float>::max()) {
    auto x = normal_values(512, 15);
    x[7] = -std::nextafter(limit, inf);
    const Status s = format(type()).encode_row(x.data(), out.data(), 512);
    ASSERT_FALSE(s.ok());
    EXPECT_NE(s.error().message.find("column 7"), std::string::npos) << s.error().message;
    EXPECT_NE(s.error().message.find("too large"), std::string::npos) << s.error().message;
  }
}

TEST_P(Encode, BlocksAreIndependentAndGuarded) {
  const auto x = normal_values(1024, 16);
  const auto whole = encode(type(), x);
  const int64_t half_bytes = dtype_row_bytes(type(), 512);
  std::vector<uint8_t> part(static_cast<size_t>(half_bytes) + 9, 0x77);
  ASSERT_TRUE(format(type()).encode_row(x.data() + 512, part.data() + 1, 512).ok());
  EXPECT_EQ(0, std::memcmp(part.data() + 1, whole.data() + half_bytes, static_cast<size_t>(half_bytes)));
  EXPECT_EQ(part[0], 0x77);
  for (size_t i = static_cast<size_t>(half_bytes) + 1; i < part.size(); ++i) EXPECT_EQ(part[i], 0x77);
}

TEST_P(Encode, EncodingDecodedValuesAgainLosesLittle) {
  const auto x = normal_values(4096, 17);
  const auto once = round_trip(type(), x);
  const auto twice = round_trip(type(), once);
  EXPECT_LE(squared_error(once, twice), 0.3 * squared_error(x, once)) << info().name;
}

TEST_P(Encode, AnyFiniteBitsAreStoredFinite) {
  std::mt19937 rng(18);
  std::vector<float> x(256);
  for (int round = 0; round < 100; ++round) {
    for (auto& v : x) {
      do {
        const uint32_t bits = rng();
        std::memcpy(&v, &bits, 4);
      } while (!(std::fabs(v) <= format(type()).max_abs));
    }
    for (float v : round_trip(type(), x)) ASSERT_TRUE(std::isfinite(v)) << info().name;
  }
}

TEST_P(Encode, ImportanceMovesTheErrorToColumnsThatMatterLess) {
  if (!info().quantized || type() == DType::kQ8_0) GTEST_SKIP() << "encoded by a fixed rule";
  const auto x = normal_values(kN, 19);
  std::vector<float> importance(x.size());
  for (size_t i = 0; i < x.size(); ++i) importance[i] = i % 4 == 0 ? 100.0f : 1.0f;
  const auto plain = round_trip(type(), x), weighted = round_trip(type(), x, importance.data());
  double before = 0, after = 0;
  for (size_t i = 0; i < x.size(); i += 4) {
    before += (plain[i] - x[i]) * (plain[i] - x[i]);
    after += (weighted[i] - x[i]) * (weighted[i] - x[i]);
  }
  EXPECT_LT(after, before) << info().name;
  // Columns without any importance, and enormous ones, still give sane values.
  std::fill(importance.begin(), importance.end(), 0.0f);
  EXPECT_EQ(encode(type(), x, importance.data()), encode(type(), x));
  for (size_t i = 0; i < 256; ++i) importance[i] = 3e38f;
  const auto odd = round_trip(type(), x, importance.data());
  EXPECT_LE(squared_error(x, odd), 4 * squared_error(x, plain));
}

INSTANTIATE_TEST_SUITE_P(Formats, Encode, testing::Range(0, static_cast<int>(DType::kMXFP4) + 1), type_name);

TEST(EncodeQ8_0, FollowsItsRuleToTheBit) {
  const auto x = normal_values(1024, 20, 3.0f);
  const auto bytes = encode(DType::kQ8_0, x);
  for (size_t b = 0; b < x.size() / 32; ++b) {
    BlockQ8_0 block;
    std::memcpy(&block, bytes.data() + b * sizeof block, sizeof block);
    float amax = 0;
    for (size_t i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[32 * b + i]));
    ASSERT_EQ(block.d, f32_to_f16(amax / 127.0f));
    const float inv = 1.0f / f16_to_f32(block.d);
    for (size_t i = 0; i < 32; ++i) {
      const float want = std::clamp(std::nearbyintf(x[32 * b + i] * inv), -127.0f, 127.0f);
      ASSERT_EQ(static_cast<float>(block.qs[i]), want);
    }
  }
}

TEST(EncodeMxfp4, ExactValuesComeBackExactly) {
  std::vector<float> x(32);
  for (int e = -120; e <= 120; e += 8) {
    for (size_t i = 0; i < 32; ++i) x[i] = std::ldexp(static_cast<float>(kMxfp4Values[i % 16]), e);
    EXPECT_EQ(round_trip(DType::kMXFP4, x), x) << e;
  }
}

}  // namespace
}  // namespace minfer::quant
