#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string_view>

#include "base/error.h"

namespace minfer {
namespace {

Error failed(const std::string& path, int code) {
  return make_error(ErrorCode::kIo, "'{}': cannot write: {}", path, std::strerror(code));
}

std::string random_letters() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string text(6, 'a');
  for (char& c : text) c = kLetters[random() % kLetters.size()];
  return text;
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path, const std::string& shown, unsigned mode) {
  struct stat st {};
  if (path.empty() || path.back() == '/' || path.find('\0') != std::string::npos)
    return make_error(ErrorCode::kInvalidArgument, "'{}': expected the name of a file", path);
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    return make_error(ErrorCode::kIo, "'{}': cannot write: it is not a regular file", path);
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
  std::string temporary;
  int fd = -1;
  // Not mkostemp(): its files have mode 0600, and only open() can ask the umask without changing it for all threads.
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && fd < 0; ++i) {
    temporary = folder + ".minfer-" + random_letters();
    fd = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, static_cast<mode_t>(mode));
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) return failed(shown.empty() ? path : shown, errno);
  return AtomicFile(path, shown.empty() ? path : shown, std::move(temporary), fd);
}

AtomicFile::AtomicFile(AtomicFile&& o) noexcept
    : path_(std::move(o.path_)), shown_(std::move(o.shown_)), temporary_(std::move(o.temporary_)), fd_(o.fd_) {
  o.fd_ = -1;
  o.temporary_.clear();
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed(shown_, n < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status AtomicFile::commit(bool sync) {
  if (sync && ::fsync(fd_) != 0) return failed(shown_, errno);
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) return failed(shown_, errno);
  temporary_.clear();
  return {};
}

}  // namespace minfer
