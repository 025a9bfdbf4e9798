// open, flock, and a look whether the path still leads to what was locked.
#include "session_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace minfer::cli {
namespace {

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

Result<SessionLock> SessionLock::take(const std::string& path) {
  constexpr int kTries = 100;  // another one may replace the file between opening and locking, not for ever
  for (int i = 0; i < kTries; ++i) {
    SessionLock lock(path);
    constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    lock.fd_ = ::open(path.c_str(), kFlags);
    if (lock.fd_ < 0 && errno == ENOENT) {
      lock.fd_ = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
      lock.made_ = lock.fd_ >= 0;
    }
    if (lock.fd_ < 0) {
      if (errno == EEXIST) continue;
      return lock;
    }
    struct stat at {};
    if (::fstat(lock.fd_, &lock.seen_) != 0 || !S_ISREG(lock.seen_.st_mode)) {
      ::close(std::exchange(lock.fd_, -1));
      return lock;
    }
    if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      lock.made_ = false;
      return make_error(ErrorCode::kIo, "'{}': another minfer chat has this session open", path);
    }
    // What was read before the lock may be old by now.
    if (::fstat(lock.fd_, &lock.seen_) == 0 && ::stat(path.c_str(), &at) == 0 && same_file(lock.seen_, at)) return lock;
    lock.made_ = false;
  }
  return SessionLock(path);
}

SessionLock::SessionLock(SessionLock&& o) noexcept
    : path_(std::move(o.path_)), fd_(std::exchange(o.fd_, -1)), made_(std::exchange(o.made_, false)), seen_(o.seen_) {}

SessionLock::~SessionLock() {
  if (made_) ::unlink(path_.c_str());
  if (fd_ >= 0) ::close(fd_);
}

Status SessionLock::check() const {
  struct stat now {};
  if (fd_ < 0 || ::stat(path_.c_str(), &now) != 0) return {};  // removed: it is written anew
  const bool same = same_file(now, seen_) && now.st_size == seen_.st_size &&
                    now.st_mtim.tv_sec == seen_.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen_.st_mtim.tv_nsec;
  if (same) return {};
  return make_error(ErrorCode::kIo,
                    "'{}': another program has changed it since it was read; it is left as it is. /save writes this "
                    "conversation to another file",
                    path_);
}

void SessionLock::replaced(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  made_ = false;
  if (::fstat(fd_, &seen_) != 0) ::close(std::exchange(fd_, -1));
}

bool SessionLock::is(const std::string& path) const {
  struct stat there {};
  return fd_ >= 0 && ::stat(path.c_str(), &there) == 0 && same_file(there, seen_);
}

}  // namespace minfer::cli
