// SessionLock: one chat at a time on a session's file, and no change by others overwritten. The lock is flock() on the
// file itself, handed on whenever it is replaced, so nothing is left beside it; where a file system has no locks the
// comparison with what was last seen remains.
// Errors:  another chat has the file; it was changed since it was read or written here.
// Threads: one owner.
#pragma once

#include <sys/stat.h>

#include <string>

#include "minfer/error.h"

namespace minfer::cli {

class SessionLock {
 public:
  // Makes an empty file where there is none, which goes away unless it is replaced. What cannot be opened, or is no
  // regular file, is not locked: reading or writing it says why.
  static Result<SessionLock> take(const std::string& path);
  SessionLock(SessionLock&& o) noexcept;
  SessionLock& operator=(SessionLock&&) = delete;
  ~SessionLock();

  bool made() const { return made_; }  // there was no file
  // Before writing: whether the file is as it was.
  Status check() const;
  // After replace_file(): the file that is there now, locked.
  void replaced(int fd);
  bool is(const std::string& path) const;  // the same file under another name

 private:
  explicit SessionLock(std::string path) : path_(std::move(path)) {}

  std::string path_;
  int fd_ = -1;
  bool made_ = false;
  struct stat seen_ {};
};

}  // namespace minfer::cli
