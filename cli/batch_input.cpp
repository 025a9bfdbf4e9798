// A buffer of one mebibyte over a file.
#include "batch_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/sha256.h"
#include "common.h"

namespace minfer::cli {
namespace {

constexpr size_t kBuffer = size_t{1} << 20;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

std::string hash_text(uint64_t hash) { return fmt::format("{:016x}", hash); }

Result<BatchInput> BatchInput::open(const std::string& path, size_t max_line) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return make_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "'{}': cannot open: {}", path,
                      std::strerror(errno));
  }
  BatchInput in(path, fd, max_line);
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    return make_error(ErrorCode::kIo, "'{}' is not a regular file: its lines are read more than once", path);
  }
  in.buffer_.resize(kBuffer);
  return in;
}

BatchInput::BatchInput(BatchInput&& o) noexcept
    : path_(std::move(o.path_)),
      fd_(std::exchange(o.fd_, -1)),
      max_line_(o.max_line_),
      buffer_(std::move(o.buffer_)),
      at_(o.at_),
      end_(o.end_),
      number_(o.number_) {}

BatchInput::~BatchInput() {
  if (fd_ >= 0) ::close(fd_);
}

bool BatchInput::is_same_file(int fd) const {
  struct stat a {
  }, b{};
  return ::fstat(fd_, &a) == 0 && ::fstat(fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Result<bool> BatchInput::fill() {
  for (;;) {
    const ssize_t n = ::read(fd_, buffer_.data(), buffer_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return make_error(ErrorCode::kIo, "'{}': reading failed: {}", path_, std::strerror(errno));
    at_ = 0;
    end_ = static_cast<size_t>(n);
    return n > 0;
  }
}

Result<std::optional<BatchLine>> BatchInput::next() {
  BatchLine line;
  Sha256 hash;
  bool any = false, ended = false;
  line.blank = true;
  while (!ended) {
    if (at_ == end_ && !MINFER_TRY(fill())) break;
    any = true;
    const char* begin = buffer_.data() + at_;
    const auto* newline = static_cast<const char*>(std::memchr(begin, '\n', end_ - at_));
    const size_t n = newline != nullptr ? static_cast<size_t>(newline - begin) : end_ - at_;
    ended = newline != nullptr;
    at_ += n + (ended ? 1 : 0);
    const std::string_view piece(begin, n);
    hash.update(std::as_bytes(std::span(piece.data(), piece.size())));
    line.blank = line.blank && std::all_of(piece.begin(), piece.end(), is_space);
    if (line.too_long || line.text.size() + n > max_line_) {
      line.too_long = true;
      line.text = {};
    } else {
      line.text += piece;
    }
  }
  if (!any) return std::optional<BatchLine>();
  line.number = ++number_;
  const Digest digest = hash.finish();
  for (size_t i = 0; i < sizeof line.hash; ++i) line.hash = line.hash << 8 | std::to_integer<uint64_t>(digest[i]);
  if (line.hash == 0) line.hash = 1;
  return std::optional<BatchLine>(std::move(line));
}

Result<LineCount> count_lines(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return make_error(ErrorCode::kIo, "'{}': cannot open: {}", path, std::strerror(errno));
  const struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  std::vector<char> buffer(kBuffer);
  LineCount count;
  bool blank = true, open = false;  // of the line in hand
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return make_error(ErrorCode::kIo, "'{}': reading failed: {}", path, std::strerror(errno));
    if (n == 0) break;
    if (interrupted()) return make_error(ErrorCode::kCancelled, "interrupted");
    const char* at = buffer.data();
    const char* const end = at + n;
    while (at < end) {
      const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
      const char* stop = newline != nullptr ? newline : end;
      blank = blank && std::all_of(at, stop, is_space);
      open = newline == nullptr;
      if (!open) {
        ++count.lines;
        count.requests += blank ? 0 : 1;
        blank = true;
      }
      at = stop + 1;
    }
  }
  if (open) {
    ++count.lines;
    count.requests += blank ? 0 : 1;
  }
  return count;
}

}  // namespace minfer::cli
