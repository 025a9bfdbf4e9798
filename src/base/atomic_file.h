// AtomicFile: a file written in parts that takes its place whole or not at all.
// Errors:  what the system says, with the path. Without commit() nothing is left behind.
// Threads: one owner.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "minfer/error.h"

namespace minfer {

class AtomicFile {
 public:
  // Begins a file beside `path`.
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& o) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  // On disk and in its place; a file that was there is replaced. The mode is 0600.
  Status commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  std::string path_, temporary_;
  int fd_;
};

}  // namespace minfer
