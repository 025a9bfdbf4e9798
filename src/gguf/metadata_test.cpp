// Typed reads: what converts, what is refused and what the refusal says.
#include "gguf/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gguf/reader.h"
#include "gguf/writer.h"

namespace minfer::gguf {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

File make(const MetadataBuilder& m) {
  Result<std::vector<std::byte>> bytes = encode(m, {}, {});
  EXPECT_TRUE(bytes.ok());
  Result<File> f = File::from_bytes(*bytes, "m.gguf");
  if (!f.ok()) ADD_FAILURE() << f.error().message;
  return std::move(f).value();
}

template <typename R>
std::string message(const R& r) {
  return r.ok() ? "(no error)" : r.error().message;
}

TEST(MetadataTest, IntegersOfAnyTypeThatFit) {
  MetadataBuilder b;
  b.set<int64_t>("small", 7);
  b.set<uint64_t>("big", std::numeric_limits<uint64_t>::max());
  b.set<int8_t>("negative", -1);
  const File f = make(b);
  const Metadata& m = f.metadata();
  EXPECT_EQ(*m.get<uint8_t>("small"), 7);
  EXPECT_EQ(*m.get<uint64_t>("big"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(*m.get<int64_t>("negative"), -1);
  EXPECT_THAT(message(m.get<int64_t>("big")),
              AllOf(HasSubstr("m.gguf: key 'big'"), HasSubstr("found 18446744073709551615 (UINT64)"),
                    HasSubstr("from -9223372036854775808 to 9223372036854775807")));
  EXPECT_THAT(message(m.get<uint32_t>("negative")), HasSubstr("found -1 (INT8), expected an integer from 0 to"));
  EXPECT_THAT(message(m.get<float>("small")), HasSubstr("found INT64, expected FLOAT32 or FLOAT64"));
  EXPECT_THAT(message(m.get<bool>("small")), HasSubstr("found INT64, expected BOOL"));
  EXPECT_THAT(message(m.get<std::string>("small")), HasSubstr("found INT64, expected STRING"));
}

TEST(MetadataTest, FloatsBoolsStrings) {
  MetadataBuilder b;
  b.set<double>("d", 1e-5);
  b.set<double>("huge", 1e300);
  b.set<float>("inf", std::numeric_limits<float>::infinity());
  b.set("t", true);
  b.set("s", "text");
  const File f = make(b);
  const Metadata& m = f.metadata();
  EXPECT_EQ(*m.get<float>("d"), 1e-5f);
  EXPECT_EQ(*m.get<double>("inf"), std::numeric_limits<double>::infinity());
  EXPECT_THAT(message(m.get<float>("huge")), HasSubstr("found 1e+300 (FLOAT64)"));
  EXPECT_THAT(message(m.get<int32_t>("d")), HasSubstr("found FLOAT64, expected an integer"));
  EXPECT_EQ(*m.get<bool>("t"), true);
  EXPECT_THAT(message(m.get<int32_t>("t")), HasSubstr("found BOOL"));
  EXPECT_EQ(*m.get<std::string_view>("s"), "text");
}

TEST(MetadataTest, AbsentKeys) {
  MetadataBuilder b;
  b.set("s", "text");
  const File f = make(b);
  EXPECT_THAT(message(f.metadata().get<int>("k")), HasSubstr("key 'k' is missing"));
  EXPECT_EQ(f.metadata().get<int>("k").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(*f.metadata().get_or<int>("k", 3), 3);
  EXPECT_FALSE(f.metadata().get_or<int>("s", 3).ok());
}

TEST(MetadataTest, Arrays) {
  MetadataBuilder b;
  b.set("shift", "x");  // so that the elements below are not aligned
  b.set_array<float>("f", std::vector<float>{1, 2.5f});
  b.set_array<uint8_t>("u8", std::vector<uint8_t>{1, 255});
  b.set_array<int32_t>("i32", std::vector<int32_t>{1, -1});
  b.set_array<int32_t>("empty", std::vector<int32_t>{});
  b.set_strings("s", std::vector<std::string>{"a", "bc"});
  b.set_bools("b", std::vector<uint8_t>{1, 0, 7});
  const File f = make(b);
  const Metadata& m = f.metadata();
  EXPECT_THAT(*m.numbers<double>("f"), ElementsAre(1, 2.5));
  EXPECT_THAT(*m.numbers<int32_t>("u8"), ElementsAre(1, 255));
  EXPECT_THAT(message(m.numbers<uint32_t>("i32")), HasSubstr("element 1: found -1 (INT32)"));
  EXPECT_THAT(message(m.numbers<float>("u8")),
              HasSubstr("found ARRAY of UINT8 (2 elements), expected ARRAY of FLOAT32"));
  EXPECT_THAT(message(m.numbers<float>("shift")), HasSubstr("found STRING, expected ARRAY of FLOAT32"));
  EXPECT_EQ(m.numbers<int32_t>("empty")->size(), 0u);
  EXPECT_THAT(*m.strings("s"), ElementsAre("a", "bc"));
  EXPECT_THAT(*m.bools("b"), ElementsAre(1, 0, 1));
  EXPECT_FALSE(m.strings("b").ok());
  EXPECT_FALSE(m.bools("s").ok());
}

TEST(MetadataTest, PerLayer) {
  MetadataBuilder b;
  b.set<uint32_t>("one", 4);
  b.set_array<uint32_t>("each", std::vector<uint32_t>{4, 2, 4});
  const File f = make(b);
  const Metadata& m = f.metadata();
  EXPECT_THAT(*m.per_layer<uint32_t>("one", 3), ElementsAre(4, 4, 4));
  EXPECT_THAT(*m.per_layer<uint32_t>("each", 3), ElementsAre(4, 2, 4));
  EXPECT_THAT(message(m.per_layer<uint32_t>("each", 4)), HasSubstr("found 3 elements, expected 4"));
  EXPECT_THAT(message(m.per_layer<uint32_t>("one", size_t{1} << 40)), HasSubstr("the limit is 65536"));
}

TEST(MetadataTest, BuilderReplacesCopiesRemoves) {
  MetadataBuilder b;
  b.set<int32_t>("a", 1);
  b.set("b", "x");
  b.set<float>("a", 2.0f);
  EXPECT_EQ(b.size(), 2u);
  const File f = make(b);
  EXPECT_EQ(f.metadata().entries()[0].key, "a");
  EXPECT_EQ(*f.metadata().get<float>("a"), 2.0f);
  MetadataBuilder c;
  c.copy_all(f.metadata());
  EXPECT_TRUE(c.remove("a"));
  EXPECT_FALSE(c.remove("a"));
  EXPECT_EQ(*make(c).metadata().get<std::string>("b"), "x");
}

TEST(TypesTest, TensorTypesMapBothWays) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    const Result<DType> back = dtype_from_ggml(dtype_to_ggml(t));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, t);
    EXPECT_EQ(dtype_from_name(ggml_type_name(dtype_to_ggml(t))), t);
  }
}

}  // namespace
}  // namespace minfer::gguf
