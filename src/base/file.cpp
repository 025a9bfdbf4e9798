// open, fstat, read; what is replaced is examined, then an AtomicFile takes its place.
#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <span>
#include <system_error>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"

namespace minfer {
namespace {

std::string system_message(int code) { return std::generic_category().message(code); }

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Fd& operator=(Fd&&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct Opened {
  Fd fd;
  uint64_t size;
};

Result<Opened> open_regular(const std::string& path) {
  // O_NONBLOCK: opening a pipe without a writer would wait for ever; it means nothing for regular files.
  Opened file{Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)), 0};
  if (file.fd.get() < 0) {
    const int code = errno;
    return make_error(code == ENOENT || code == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo,
                      "'{}': cannot open: {}", path, system_message(code));
  }
  struct stat st {};
  if (::fstat(file.fd.get(), &st) != 0) {
    return make_error(ErrorCode::kIo, "'{}': cannot examine: {}", path, system_message(errno));
  }
  if (!S_ISREG(st.st_mode)) return make_error(ErrorCode::kIo, "'{}' is not a regular file", path);
  file.size = static_cast<uint64_t>(st.st_size);
  return file;
}

Result<size_t> read_some(const Opened& file, const std::string& path, std::span<std::byte> out) {
  for (;;) {
    const ssize_t n = ::read(file.fd.get(), out.data(), out.size());
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) return make_error(ErrorCode::kIo, "'{}': reading failed: {}", path, system_message(errno));
  }
}

struct Target {
  std::string path;  // without symbolic links
  bool exists = false;
  struct stat st {};
};

Result<Target> find_target(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return make_error(ErrorCode::kInvalidArgument, "'{}': expected the name of a file", path);
  }
  Target t{path, false, {}};
  if (::stat(path.c_str(), &t.st) != 0) {
    if (errno != ENOENT) return make_error(ErrorCode::kIo, "'{}': cannot write: {}", path, system_message(errno));
    struct stat link {};
    if (::lstat(path.c_str(), &link) == 0) {
      return make_error(ErrorCode::kIo, "'{}': cannot write: a symbolic link to a file that is not there", path);
    }
    return t;
  }
  t.exists = true;
  if (!S_ISREG(t.st.st_mode)) {
    return make_error(ErrorCode::kIo, "'{}': cannot write: it is not a regular file", path);
  }
  for (const int fd :
       {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {  // "/dev/stdout", redirected: what is printed would be lost
    struct stat open {};
    if (::fstat(fd, &open) == 0 && open.st_dev == t.st.st_dev && open.st_ino == t.st.st_ino) {
      return make_error(ErrorCode::kIo, "'{}': cannot write: this program has it open already", path);
    }
  }
  // The permission bits count for the superuser too: whoever took them away did not want the file replaced.
  constexpr mode_t kWriteBits = S_IWUSR | S_IWGRP | S_IWOTH;
  if ((t.st.st_mode & kWriteBits) == 0 || ::access(path.c_str(), W_OK) != 0) {
    return make_error(ErrorCode::kIo, "'{}': cannot write: it is read-only", path);
  }
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return make_error(ErrorCode::kIo, "'{}': cannot write: {}", path, system_message(errno));
  t.path = resolved;
  std::free(resolved);
  return t;
}

}  // namespace

Result<std::string> read_regular_file(const std::string& path, size_t limit) {
  const Opened file = MINFER_TRY(open_regular(path));
  const auto too_long = [&] { return make_error(ErrorCode::kCorrupt, "'{}': more than {} bytes", path, limit); };
  if (file.size > limit) return too_long();
  std::string text;
  text.resize(static_cast<size_t>(file.size));
  size_t have = 0;
  for (;;) {
    if (have == text.size()) text.resize(have + 4096);  // it may have grown; files of /proc say they are empty
    const size_t n = MINFER_TRY(read_some(file, path, std::as_writable_bytes(std::span(text)).subspan(have)));
    if (n == 0) break;
    have += n;
    if (have > limit) return too_long();
  }
  text.resize(have);
  return text;
}

Result<size_t> read_regular_file(const std::string& path, std::span<std::byte> out) {
  const Opened file = MINFER_TRY(open_regular(path));
  size_t have = 0;
  while (have < out.size()) {
    const size_t n = MINFER_TRY(read_some(file, path, out.subspan(have)));
    if (n == 0) break;
    have += n;
  }
  return have;
}

Status replace_file(const std::string& path, std::string_view content, unsigned new_mode, int* locked) {
  const Target target = MINFER_TRY(find_target(path));
  const auto failed = [&](int code) {
    return make_error(ErrorCode::kIo, "'{}': cannot write: {}", path, system_message(code));
  };
  const size_t slash = target.path.rfind('/');
  if (slash + 1 == target.path.size()) return failed(EISDIR);
  AtomicFile file = MINFER_TRY(AtomicFile::create(target.path, path, target.exists ? 0600 : new_mode));
  if (target.exists && (target.st.st_uid != ::geteuid() || target.st.st_gid != ::getegid())) {
    // Only the superuser may give files away; for others the file becomes theirs, as with every editor.
    [[maybe_unused]] const int ignored = ::fchown(file.fd(), target.st.st_uid, target.st.st_gid);
  }
  MINFER_TRY(file.write(std::as_bytes(std::span(content.data(), content.size()))));
  constexpr mode_t kPermissions = S_IRWXU | S_IRWXG | S_IRWXO;
  if (target.exists && ::fchmod(file.fd(), target.st.st_mode & kPermissions) != 0) return failed(errno);
  Fd kept(locked != nullptr ? ::fcntl(file.fd(), F_DUPFD_CLOEXEC, 0) : -1);
  if (locked != nullptr && kept.get() < 0) return failed(errno);
  if (locked != nullptr) ::flock(kept.get(), LOCK_EX | LOCK_NB);  // nobody else knows the file yet
  MINFER_TRY(file.commit());
  if (locked != nullptr) *locked = kept.release();
  const std::string folder = slash == std::string::npos ? "." : target.path.substr(0, slash + 1);
  const Fd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());  // some file systems cannot; the file itself is safe
  return {};
}

Status check_replaceable(const std::string& path) {
  MINFER_TRY(find_target(path));
  return {};
}

}  // namespace minfer
