// MappedFile: a read-only mapping of a whole regular file; move-only, its address never changes.
// Errors:  each names the path, what was asked and what the system said. Directories, pipes, devices and empty files
//          are refused (an empty file cannot be mapped and holds nothing to read).
// Threads: reading is free for all; advice may be given from any thread.
// Note:    a file that another process cuts short while it is mapped raises SIGBUS on access: replace model files by
//          rename (as minfer's own writer does), never in place.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/error.h"

namespace minfer {

class MappedFile {
 public:
  MappedFile() = default;
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& o) noexcept;
  MappedFile& operator=(MappedFile&& o) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Hints about a range of a file mapping; both keep the contents readable and can only change speed and memory.
void advise_will_need(std::span<const std::byte> range);  // start reading its pages
void advise_drop(
    std::span<const std::byte> range);  // give back the pages wholly inside it; a later read loads them again

}  // namespace minfer
