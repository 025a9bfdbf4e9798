// A file through a buffer.
#include "base/file_hash.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/sha256.h"

namespace minfer {

Result<std::string> sha256_files(const std::vector<std::string>& paths,
                                 const std::function<bool(int64_t, int64_t)>& progress) {
  const auto failed = [](const std::string& path) {
    return make_error(ErrorCode::kIo, "'{}': reading failed: {}", path, std::generic_category().message(errno));
  };
  int64_t done = 0, total = 0;
  for (const auto& path : paths) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return failed(path);
    total += st.st_size;
  }
  constexpr size_t kBuffer = size_t{1} << 20;
  std::vector<std::byte> buffer(kBuffer);
  Sha256 hash;
  for (const auto& path : paths) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failed(path);
    const struct Closer {
      int fd;
      ~Closer() { ::close(fd); }
    } closer{fd};
    for (;;) {
      const ssize_t n = ::read(fd, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed(path);
      if (n == 0) break;
      hash.update(std::span(buffer.data(), static_cast<size_t>(n)));
      done += n;
      if (progress && !progress(done, total)) return make_error(ErrorCode::kCancelled, "interrupted");
    }
  }
  return to_hex(hash.finish());
}

}  // namespace minfer
