#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace minfer {
namespace {
namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "minfer-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  static unsigned mode(const std::string& p) {
    struct stat st {};
    return ::stat(p.c_str(), &st) == 0 ? st.st_mode & 07777u : 0u;
  }
  size_t n_files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  fs::path folder_;
};

TEST_F(FileTest, NewFileHasTheModeAskedFor) {
  ASSERT_TRUE(replace_file(path("a"), "text", 0600).ok());
  EXPECT_EQ(*read_regular_file(path("a"), 4), "text");
  EXPECT_EQ(mode(path("a")), 0600u);
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(FileTest, OldFileKeepsItsMode) {
  ASSERT_TRUE(replace_file(path("a"), "one", 0640).ok());
  ASSERT_TRUE(replace_file(path("a"), "", 0600).ok());
  EXPECT_EQ(*read_regular_file(path("a"), 10), "");
  EXPECT_EQ(mode(path("a")), 0640u);
}

TEST_F(FileTest, SymbolicLinksStayAndTheirTargetIsReplaced) {
  fs::create_directory(path("d"));
  ASSERT_TRUE(replace_file(path("d/real"), "one", 0600).ok());
  fs::create_symlink("d/real", path("link"));
  ASSERT_TRUE(replace_file(path("link"), "two", 0600).ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(*read_regular_file(path("d/real"), 10), "two");
  fs::create_symlink("nothing", path("dangling"));
  EXPECT_FALSE(replace_file(path("dangling"), "x", 0600).ok());
  EXPECT_TRUE(fs::is_symlink(path("dangling")));
}

TEST_F(FileTest, WhatIsNoRegularFileIsRefused) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& p : {path("pipe"), std::string("/dev/null"), folder_.string()}) {
    const auto written = replace_file(p, "x", 0600);
    ASSERT_FALSE(written.ok()) << p;
    EXPECT_NE(written.error().message.find("not a regular file"), std::string::npos);
    const auto read = read_regular_file(p, 10);
    ASSERT_FALSE(read.ok()) << p;
    EXPECT_NE(read.error().message.find("not a regular file"), std::string::npos);
  }
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  for (const char* p : {"", "no/such/folder/x", "slash/"}) EXPECT_FALSE(replace_file(p, "x", 0600).ok()) << p;
  EXPECT_EQ(read_regular_file(path("absent"), 10).error().code, ErrorCode::kNotFound);
}

TEST_F(FileTest, ReadOnlyIsRefused) {
  ASSERT_TRUE(replace_file(path("a"), "one", 0400).ok());
  const auto status = replace_file(path("a"), "two", 0600);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("read-only"), std::string::npos);
  EXPECT_EQ(*read_regular_file(path("a"), 10), "one");
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(FileTest, ReadingIsBounded) {
  ASSERT_TRUE(replace_file(path("a"), std::string(10000, 'x'), 0600).ok());
  EXPECT_EQ(read_regular_file(path("a"), 10000)->size(), 10000u);
  EXPECT_FALSE(read_regular_file(path("a"), 9999).ok());
  EXPECT_TRUE(read_regular_file("/proc/self/status", 1 << 20).ok());  // says it has 0 bytes
  EXPECT_FALSE(read_regular_file("/proc/self/status", 10).ok());
}

}  // namespace
}  // namespace minfer
