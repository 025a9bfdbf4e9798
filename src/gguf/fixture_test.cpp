// Files made by another implementation (tools/make_gguf_fixtures.py): read with the right values, and written again
// byte for byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "gguf/reader.h"
#include "gguf/writer.h"

namespace minfer::gguf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string data_path(const std::string& name) { return std::string(MINFER_SOURCE_DIR) + "/tests/data/gguf/" + name; }

File open_fixture(const std::string& name) {
  Result<File> r = File::open(data_path(name));
  if (!r.ok()) ADD_FAILURE() << r.error().message;
  return std::move(r).value();
}

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string s((std::istreambuf_iterator<char>(in)), {});
  const auto bytes = std::as_bytes(std::span(s));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> written_again(const File& f) {
  MetadataBuilder m;
  m.copy_all(f.metadata());
  std::vector<TensorSpec> specs;
  std::vector<std::span<const std::byte>> data;
  for (const TensorInfo& t : f.tensors()) {
    specs.push_back({t.name, t.dtype, t.shape});
    data.push_back(f.bytes(t));
  }
  Result<std::vector<std::byte>> r = encode(m, specs, data);
  if (!r.ok()) ADD_FAILURE() << r.error().message;
  return std::move(r).value();
}

class EveryType : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryType, HasTheRightValues) {
  const File f = open_fixture(GetParam());
  const Metadata& m = f.metadata();
  EXPECT_EQ(*m.get<uint8_t>("t.u8"), 200);
  EXPECT_EQ(*m.get<int8_t>("t.i8"), -100);
  EXPECT_EQ(*m.get<uint16_t>("t.u16"), 60000);
  EXPECT_EQ(*m.get<int16_t>("t.i16"), -30000);
  EXPECT_EQ(*m.get<uint32_t>("t.u32"), 4000000000u);
  EXPECT_EQ(*m.get<int32_t>("t.i32"), -2000000000);
  EXPECT_EQ(*m.get<uint64_t>("t.u64"), (uint64_t{1} << 63) + 5);
  EXPECT_EQ(*m.get<int64_t>("t.i64"), -(int64_t{1} << 62));
  EXPECT_EQ(*m.get<float>("t.f32"), 0.1f);
  EXPECT_EQ(*m.get<double>("t.f64"), 0.1);
  EXPECT_EQ(*m.get<bool>("t.true"), true);
  EXPECT_EQ(*m.get<bool>("t.false"), false);
  EXPECT_EQ(*m.get<std::string_view>("t.string"), "h\xc3\xa9llo\nworld");
  EXPECT_EQ(*m.get<std::string>("general.architecture"), "llama");
  EXPECT_THAT(*m.numbers<int32_t>("t.ints"), ElementsAre(1, -2, 3));
  EXPECT_THAT(*m.numbers<float>("t.floats"), ElementsAre(0.5f, -1.25f));
  EXPECT_THAT(*m.bools("t.bools"), ElementsAre(1, 0, 1));
  const auto strings = *m.strings("t.strings");
  ASSERT_EQ(strings.size(), 4u);
  EXPECT_EQ(strings[0], "a");
  EXPECT_EQ(strings[1], "");
  EXPECT_EQ(strings[2], "\xc3\xa7\xc3\xa9");
  EXPECT_EQ(strings[3].size(), 100u);

  ASSERT_EQ(f.tensors().size(), 5u);
  const TensorInfo* one = f.find("one_dim");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->shape, (Shape{7}));
  EXPECT_EQ(one->dtype, DType::kF16);
  EXPECT_EQ(one->bytes, 14u);
  const TensorInfo* two = f.find("two_dims");
  EXPECT_EQ(two->shape, (Shape{3, 5}));
  const TensorInfo* four = f.find("four_dims");
  EXPECT_EQ(four->shape, (Shape{2, 3, 4, 5}));
  for (const TensorInfo* t : {two, four}) {
    for (int i = 0; i < t->shape.count(); ++i) {
      float v;
      std::memcpy(&v, f.data(*t) + i * 4, 4);
      EXPECT_EQ(v, static_cast<float>(i));
    }
  }
  const TensorInfo* blocks = f.find("blocks");
  EXPECT_EQ(blocks->shape, (Shape{2, 64}));
  EXPECT_EQ(blocks->dtype, DType::kQ8_0);
  EXPECT_EQ(blocks->bytes, 136u);
  for (int i = 0; i < 136; ++i) EXPECT_EQ(static_cast<int>(f.data(*blocks)[i]), i * 7 % 251);
  EXPECT_EQ(f.find("absent"), nullptr);
  EXPECT_THAT(f.require("absent").error().message, HasSubstr("tensor 'absent' is missing"));
}

INSTANTIATE_TEST_SUITE_P(Versions, EveryType, ::testing::Values("every_type.gguf", "every_type_v2.gguf"));

TEST(FixtureTest, VersionsAndAlignment) {
  EXPECT_EQ(open_fixture("every_type.gguf").version(), 3u);
  EXPECT_EQ(open_fixture("every_type_v2.gguf").version(), 2u);
  const File f = open_fixture("align_128.gguf");
  EXPECT_EQ(f.alignment(), 128u);
  EXPECT_EQ(f.find("b")->offset - f.find("a")->offset, 128u);
}

TEST(FixtureTest, WritingAgainGivesTheSameBytes) {
  for (const char* name : {"every_type.gguf", "align_128.gguf"}) {
    EXPECT_EQ(written_again(open_fixture(name)), read_file(data_path(name))) << name;
  }
}

TEST(FixtureTest, BigEndianIsNamedAsSuch) {
  const Result<File> r = File::open(data_path("big_endian.gguf"));
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.error().message, HasSubstr("byte-swapped"));
}

TEST(FixtureTest, SplitPartsAreGathered) {
  const File f = open_fixture("split-00001-of-00003.gguf");
  EXPECT_EQ(f.n_parts(), 3u);
  EXPECT_EQ(f.part_path(2), data_path("split-00003-of-00003.gguf"));
  EXPECT_EQ(f.total_bytes(), 384u + 288 + 192);
  EXPECT_EQ(*f.metadata().get<std::string>("t.string"), "in the first part");
  ASSERT_EQ(f.tensors().size(), 5u);
  for (int i = 0; i < 5; ++i) {
    const TensorInfo* t = f.find("blk." + std::to_string(i) + ".w");
    ASSERT_NE(t, nullptr);
    EXPECT_EQ(t->part, i / 2);
    float v;
    std::memcpy(&v, f.data(*t) + 4, 4);
    EXPECT_EQ(v, 100.0f * static_cast<float>(i) + 1);
  }
  const Result<File> second = File::open(data_path("split-00002-of-00003.gguf"));
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("part 2 of 3"));
  EXPECT_THAT(second.error().message, HasSubstr("split-00001-of-00003.gguf"));
}

// Real models from outside: opened, and written again byte for byte.
TEST(FixtureTest, CasesFromOutside) {
  const char* env = std::getenv("MINFER_CASES");
  const std::filesystem::path dir =
      env ? std::filesystem::path(env) : std::filesystem::path(MINFER_SOURCE_DIR) / "../shared/cases";
  if (!std::filesystem::exists(dir / "models")) GTEST_SKIP() << "no " << dir << " here (set MINFER_CASES)";
  int n = 0;
  for (const char* folder : {"models", "tokenizers"}) {
    for (const auto& e : std::filesystem::recursive_directory_iterator(dir / folder)) {
      if (e.path().extension() != ".gguf") continue;
      const Result<File> f = File::open(e.path().string());
      ASSERT_TRUE(f.ok()) << f.error().message;
      std::vector<std::byte> again = written_again(*f), bytes = read_file(e.path().string());
      if (f->version() == 2) bytes[4] = std::byte{3};
      // Padding after the last tensor, or after infos without tensors, may be there or not.
      again.resize(std::max(again.size(), bytes.size()));
      bytes.resize(again.size());
      EXPECT_EQ(again == bytes, true) << e.path();
      ++n;
    }
  }
  EXPECT_GT(n, 10);
}

}  // namespace
}  // namespace minfer::gguf
