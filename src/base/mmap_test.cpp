// Mappings: contents, moves, and what cannot be mapped. A named pipe must be refused, not waited for.
#include "base/mmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace minfer {
namespace {

using ::testing::HasSubstr;

TEST(MappedFileTest, ContentsAndRefusals) {
  const std::filesystem::path dir =
      std::filesystem::temp_directory_path() / ("minfer_mmap_test_" + std::to_string(::getpid()));
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  const std::string file = (dir / "f").string(), pipe = (dir / "p").string(), empty = (dir / "e").string();
  const std::string text(10000, 'x');
  std::ofstream(file) << text;
  std::ofstream(empty).flush();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);

  Result<MappedFile> r = MappedFile::open(file);
  ASSERT_TRUE(r.ok()) << r.error().message;
  const std::byte* address = r->data();
  MappedFile m = std::move(r).value();
  EXPECT_EQ(m.data(), address);
  ASSERT_EQ(m.size(), text.size());
  advise_will_need(m.bytes());
  advise_drop(m.bytes().subspan(1));
  advise_drop({});
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(m.data()), m.size()), text);
  m = MappedFile();
  EXPECT_EQ(m.size(), 0u);

  EXPECT_EQ(MappedFile::open((dir / "absent").string()).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(MappedFile::open(dir.string()).error().message, HasSubstr("is a directory"));
  EXPECT_THAT(MappedFile::open(pipe).error().message, HasSubstr("no regular file"));
  EXPECT_THAT(MappedFile::open(empty).error().message, HasSubstr("is empty"));
  EXPECT_FALSE(MappedFile::open(file + std::string(1, '\0')).ok());
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace minfer
