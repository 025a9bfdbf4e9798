// open, fstat, read; mkostemp beside the target, fsync, rename.
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/error.h"

namespace minfer {
namespace {

std::string system_message(int code) { return std::generic_category().message(code); }

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

// A temporary file, removed unless it was renamed.
struct Temporary {
  std::string path;
  bool renamed = false;
  ~Temporary() {
    if (!renamed) ::unlink(path.c_str());
  }
};

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
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
  // O_NONBLOCK: opening a pipe without a writer would wait for ever; it means nothing for regular files.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) {
    const int code = errno;
    return make_error(code == ENOENT || code == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo,
                      "'{}': cannot open: {}", path, system_message(code));
  }
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) {
    return make_error(ErrorCode::kIo, "'{}': cannot examine: {}", path, system_message(errno));
  }
  if (!S_ISREG(st.st_mode)) return make_error(ErrorCode::kIo, "'{}' is not a regular file", path);
  const auto too_long = [&] { return make_error(ErrorCode::kCorrupt, "'{}': more than {} bytes", path, limit); };
  if (static_cast<uint64_t>(st.st_size) > limit) return too_long();
  std::string text;
  text.resize(static_cast<size_t>(st.st_size));
  size_t have = 0;
  for (;;) {
    if (have == text.size()) text.resize(have + 4096);  // it may have grown; files of /proc say they are empty
    const ssize_t n = ::read(fd.get(), text.data() + have, text.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return make_error(ErrorCode::kIo, "'{}': reading failed: {}", path, system_message(errno));
    if (n == 0) break;
    have += static_cast<size_t>(n);
    if (have > limit) return too_long();
  }
  text.resize(have);
  return text;
}

Status replace_file(const std::string& path, std::string_view content, unsigned new_mode) {
  const Target target = MINFER_TRY(find_target(path));
  const auto failed = [&](int code) {
    return make_error(ErrorCode::kIo, "'{}': cannot write: {}", path, system_message(code));
  };
  const size_t slash = target.path.rfind('/');
  if (slash + 1 == target.path.size()) return failed(EISDIR);
  const std::string folder = slash == std::string::npos ? "." : target.path.substr(0, slash + 1);
  Temporary temporary{folder + "/.minfer-XXXXXX"};
  Fd fd(::mkostemp(temporary.path.data(), O_CLOEXEC));  // O_EXCL, mode 0600: no link and no other's file
  if (fd.get() < 0) {
    const int code = errno;
    temporary.renamed = true;  // there is none
    return failed(code);
  }
  constexpr mode_t kPermissions = S_IRWXU | S_IRWXG | S_IRWXO;
  const mode_t mode = target.exists ? target.st.st_mode & kPermissions : static_cast<mode_t>(new_mode);
  if (target.exists && (target.st.st_uid != ::geteuid() || target.st.st_gid != ::getegid())) {
    // Only the superuser may give files away; for others the file becomes theirs, as with every editor.
    [[maybe_unused]] const int ignored = ::fchown(fd.get(), target.st.st_uid, target.st.st_gid);
  }
  if (!write_all(fd.get(), content) || ::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0 || !fd.close() ||
      ::rename(temporary.path.c_str(), target.path.c_str()) != 0) {
    return failed(errno);
  }
  temporary.renamed = true;
  const Fd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());  // some file systems cannot; the file itself is safe
  return {};
}

}  // namespace minfer
