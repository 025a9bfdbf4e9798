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
  // Begins a file beside `path`, of `mode` as far as the umask allows; it replaces what is there, a symbolic link too
  // (replace_file() in file.h keeps links and modes). Errors name `shown` in its place where it is not empty.
  static Result<AtomicFile> create(const std::string& path, const std::string& shown = "", unsigned mode = 0600);
  AtomicFile(AtomicFile&& o) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  int fd() const { return fd_; }  // for its mode and owner
  // In its place, and on disk first unless `sync` is false: then a crash of the machine may leave a damaged file.
  Status commit(bool sync = true);

 private:
  AtomicFile(std::string path, std::string shown, std::string temporary, int fd)
      : path_(std::move(path)), shown_(std::move(shown)), temporary_(std::move(temporary)), fd_(fd) {}
  std::string path_, shown_, temporary_;
  int fd_;
};

}  // namespace minfer
