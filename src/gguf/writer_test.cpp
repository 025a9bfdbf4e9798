// The writer on disk: pieces, atomic appearance, refusals; and split files made by it.
#include "gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gguf/reader.h"

namespace minfer::gguf {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class WriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("minfer_writer_test_" + std::to_string(::getpid()));
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  size_t n_files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(dir_), {})); }

  // One part with one F32 tensor of four values.
  std::string write_part(const std::string& name, const MetadataBuilder& m, const std::string& tensor) {
    const std::vector<std::byte> data(16, std::byte{1});
    Result<Writer> w = Writer::create(path(name), m, {{tensor, DType::kF32, {4}}});
    EXPECT_TRUE(w.ok() && w->write(data).ok() && w->finish().ok());
    return path(name);
  }

  static MetadataBuilder split(uint16_t no, uint16_t count, int32_t tensors) {
    MetadataBuilder m;
    m.set<uint16_t>("split.no", no);
    m.set<uint16_t>("split.count", count);
    m.set<int32_t>("split.tensors.count", tensors);
    return m;
  }

  std::string open_error(const std::string& p) {
    const Result<File> r = File::open(p);
    return r.ok() ? "(opened)" : r.error().message;
  }

  fs::path dir_;
};

TEST_F(WriterTest, PiecesOfAnySize) {
  MetadataBuilder m;
  m.set("general.architecture", "llama");
  const size_t big = (size_t{3} << 20) + 8;  // more than the writer's buffer
  std::vector<std::byte> a(big), b(34);
  for (size_t i = 0; i < big; ++i) a[i] = static_cast<std::byte>(i * 31 >> 3);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::byte>(i);
  Result<Writer> w = Writer::create(path("m.gguf"), m,
                                    {{"a", DType::kI8, {2, static_cast<int64_t>(big / 2)}}, {"b", DType::kQ8_0, {32}}});
  ASSERT_TRUE(w.ok()) << w.error().message;
  EXPECT_EQ(w->current()->name, "a");
  size_t at = 0;
  for (size_t n = 1; at < big; n = n * 3 + 1) {
    const size_t piece = std::min(n, big - at);
    ASSERT_TRUE(w->write(std::span(a).subspan(at, piece)).ok());
    at += piece;
  }
  EXPECT_EQ(w->current()->name, "b");
  EXPECT_THAT(w->finish().error().message, HasSubstr("tensor 'b' has 0 of 34 bytes"));
  EXPECT_FALSE(fs::exists(path("m.gguf")));
  ASSERT_TRUE(w->write(b).ok());
  EXPECT_EQ(w->current(), nullptr);
  EXPECT_THAT(w->write(b).error().message, HasSubstr("34 bytes after the last tensor"));
  ASSERT_TRUE(w->finish().ok());
  EXPECT_EQ(n_files(), 1u);

  Result<File> f = File::open(path("m.gguf"));
  ASSERT_TRUE(f.ok()) << f.error().message;
  const auto same = [&](const char* name, const std::vector<std::byte>& want) {
    const std::span<const std::byte> got = f->bytes(*f->find(name));
    return std::equal(got.begin(), got.end(), want.begin(), want.end());
  };
  EXPECT_TRUE(same("a", a) && same("b", b));
  f->will_need(*f->find("a"));
  f->drop_pages(*f->find("a"));
  EXPECT_TRUE(same("a", a) && same("b", b));
  const File moved = std::move(f).value();
  EXPECT_EQ(moved.find("b")->name, "b");
}

TEST_F(WriterTest, AnUnfinishedFileLeavesNothing) {
  std::ofstream(path("m.gguf")) << "old";
  {
    Result<Writer> w = Writer::create(path("m.gguf"), {}, {{"a", DType::kF32, {4}}});
    ASSERT_TRUE(w.ok());
    EXPECT_EQ(n_files(), 2u);
  }
  EXPECT_EQ(n_files(), 1u);
  EXPECT_EQ(fs::file_size(path("m.gguf")), 3u);
}

TEST_F(WriterTest, RefusesWhatTheReaderWould) {
  const auto message = [](const MetadataBuilder& m, std::vector<TensorSpec> t) {
    const Result<Writer> w = Writer::create_in_memory(m, std::move(t));
    return w.ok() ? std::string("(no error)") : w.error().message;
  };
  MetadataBuilder none, empty_key, odd_alignment, text_alignment;
  empty_key.set("", "x");
  odd_alignment.set<uint32_t>("general.alignment", 24);
  text_alignment.set("general.alignment", "32");
  EXPECT_THAT(message(empty_key, {}), HasSubstr("it has 0 bytes"));
  EXPECT_THAT(message(odd_alignment, {}), HasSubstr("general.alignment is 24"));
  EXPECT_THAT(message(text_alignment, {}), HasSubstr("found STRING"));
  EXPECT_THAT(message(none, {{"", DType::kF32, {4}}}), HasSubstr("name has 0 bytes"));
  EXPECT_THAT(message(none, {{std::string(65, 'x'), DType::kF32, {4}}}), HasSubstr("65 bytes"));
  EXPECT_THAT(message(none, {{"x", DType::kF32, {}}}), HasSubstr("0 dimensions"));
  EXPECT_THAT(message(none, {{"x", DType::kF32, {4, 0}}}), HasSubstr("[4, 0]"));
  EXPECT_THAT(message(none, {{"x", DType::kQ4_K, {2, 128}}}),
              HasSubstr("rows of 128 values, expected a multiple of 256"));
  EXPECT_THAT(message(none, {{"x", DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}}}), HasSubstr("overflows"));
  EXPECT_THAT(message(none, {{"x", DType::kF32, {1}}, {"x", DType::kF32, {1}}}), HasSubstr("given twice"));
  const int64_t half = int64_t{1} << 62;
  EXPECT_THAT(message(none, {{"x", DType::kI8, {half}}, {"y", DType::kI8, {half}}}), HasSubstr("sizes overflow"));
  EXPECT_THAT(Writer::create(path("absent/m.gguf"), none, {}).error().message, HasSubstr("No such file"));
  EXPECT_THAT(Writer::create(dir_.string(), none, {}).error().message, HasSubstr("no regular file"));

  Result<Writer> w = Writer::create_in_memory(none, {{"x", DType::kF32, {2}}});
  ASSERT_TRUE(w.ok());
  EXPECT_THAT(w->write(std::vector<std::byte>(9)).error().message, HasSubstr("9 bytes after the first 0 exceed its 8"));
}

TEST_F(WriterTest, SplitFaultsNameThePart) {
  const std::string first = write_part("m-00001-of-00002.gguf", split(0, 2, 2), "a");
  EXPECT_THAT(open_error(first), HasSubstr("m-00002-of-00002.gguf': No such file"));
  EXPECT_THAT(open_error(first), HasSubstr("part 2 of 2"));

  write_part("m-00002-of-00002.gguf", split(1, 2, 2), "b");
  EXPECT_EQ(open_error(first), "(opened)");
  write_part("m-00002-of-00002.gguf", split(1, 2, 2), "a");
  EXPECT_THAT(open_error(first), HasSubstr("00002-of-00002.gguf: tensor 'a' appears twice, also in " + first));
  write_part("m-00002-of-00002.gguf", split(0, 2, 2), "b");
  EXPECT_THAT(open_error(first), HasSubstr("found split.no 0 and split.count 2, expected 1 and 2"));
  write_part("m-00002-of-00002.gguf", {}, "b");
  EXPECT_THAT(open_error(first), HasSubstr("00002-of-00002.gguf: key 'split.no' is missing"));
  std::ofstream(path("m-00002-of-00002.gguf")) << "GGUF";
  EXPECT_THAT(open_error(first), HasSubstr("00002-of-00002.gguf: version at byte 4"));
  write_part("m-00001-of-00002.gguf", split(0, 2, 3), "a");
  write_part("m-00002-of-00002.gguf", split(1, 2, 3), "b");
  EXPECT_THAT(open_error(first), HasSubstr("the 2 parts hold 2 tensors, expected 3"));
  EXPECT_THAT(open_error(write_part("other.gguf", split(0, 2, 2), "a")), HasSubstr("ends in '-00001-of-00002.gguf'"));
  EXPECT_THAT(open_error(write_part("m-00001-of-00002.gguf", split(2, 2, 2), "a")),
              HasSubstr("expected less than split.count (2)"));
}

TEST_F(WriterTest, WhatIsNoFile) {
  EXPECT_THAT(open_error(path("absent")), HasSubstr("No such file"));
  EXPECT_THAT(open_error(dir_.string()), HasSubstr("is a directory"));
  EXPECT_THAT(open_error("/dev/null"), HasSubstr("no regular file"));
  std::ofstream(path("empty")).flush();
  EXPECT_THAT(open_error(path("empty")), HasSubstr("is empty (0 bytes)"));
}

TEST(SplitNameTest, PathsBothWays) {
  EXPECT_EQ(split_path("d/x", 1, 3), "d/x-00002-of-00003.gguf");
  EXPECT_EQ(split_prefix("d/x-00002-of-00003.gguf", 1, 3), "d/x");
  EXPECT_EQ(split_prefix("d/x-00002-of-00003.gguf", 0, 3), "");
  EXPECT_EQ(split_prefix("-00002-of-00003.gguf", 1, 3), "");
}

}  // namespace
}  // namespace minfer::gguf
