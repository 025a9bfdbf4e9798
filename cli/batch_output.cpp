// Appending, and reading back what was appended.
#include "batch_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "batch_input.h"
#include "common.h"
#include "trace/tracer.h"

namespace minfer::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHead = "{\"line\":", kHash = ",\"line_hash\":\"";
constexpr size_t kMaxNoteBytes = size_t{16} << 20;

// Discarded where it is none; a NUL would be taken for the end of the text.
Json json_text(const std::string& text) {
  if (text.find('\0') != text.npos) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

Error system_error(const std::string& path, const char* what) {
  return make_error(ErrorCode::kIo, "'{}': {}: {}", path, what, std::strerror(errno));
}

// The first field that differs, in words.
Status compare_notes(const std::string& path, const Json& earlier, const Json& now) {
  for (const auto& [key, value] : now.items()) {
    const Json found = earlier.contains(key) ? earlier[key] : Json();
    if (found == value) continue;
    const auto shown = [](const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); };
    return make_error(ErrorCode::kUnsupported,
                      "'{}' was made with another {}: {}, this run has {}. Give the earlier run's to go on with it, "
                      "another file, or --overwrite to begin anew",
                      path, key, shown(found), shown(value));
  }
  return {};
}

}  // namespace

std::string line_head(int64_t number, uint64_t hash) {
  return fmt::format("{}{}{}{}\",", kHead, number, kHash, hash_text(hash));
}

Result<BatchOutput> BatchOutput::open(const std::string& path) {
  if (path.empty() || path == "-") {
    return make_error(ErrorCode::kInvalidArgument, "'{}': expected the name of a file: results are kept there", path);
  }
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (fd < 0) return system_error(path, "cannot open for writing");
  BatchOutput out(path, fd);
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    return make_error(ErrorCode::kIo, "'{}' is not a regular file: a batch that is resumed reads its results", path);
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return make_error(ErrorCode::kIo, "'{}': another minfer batch is writing it", path);
    return system_error(path, "cannot lock");
  }
  return out;
}

BatchOutput::BatchOutput(BatchOutput&& o) noexcept
    : path_(std::move(o.path_)),
      fd_(std::exchange(o.fd_, -1)),
      done_(std::move(o.done_)),
      n_done_(o.n_done_),
      dirty_(o.dirty_),
      synced_ns_(o.synced_ns_) {}

BatchOutput::~BatchOutput() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string> BatchOutput::read_note() const {
  auto text = read_regular_file(note_path(), kMaxNoteBytes);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return std::string();
  return text;
}

Result<int32_t> BatchOutput::earlier_ctx() const {
  struct stat st {};
  if (::fstat(fd_, &st) != 0 || st.st_size == 0) return 0;
  const std::string text = MINFER_TRY(read_note());
  const Json j = json_text(text);
  if (!j.is_object() || !j.contains("ctx") || !j["ctx"].is_number_integer()) return 0;  // begin() says what is wrong
  const auto ctx = j["ctx"].get<int64_t>();
  constexpr int64_t kMost = 1 << 30;
  return ctx > 0 && ctx <= kMost ? static_cast<int32_t>(ctx) : 0;
}

Status BatchOutput::discard() {
  if (::ftruncate(fd_, 0) != 0) return system_error(path_, "cannot cut");
  if (::unlink(note_path().c_str()) != 0 && errno != ENOENT) return system_error(note_path(), "cannot remove");
  return {};
}

Status BatchOutput::begin(const Json& note, int64_t n_lines) {
  struct stat st {};
  if (::fstat(fd_, &st) != 0) return system_error(path_, "cannot examine");
  const std::string earlier = MINFER_TRY(read_note());
  if (st.st_size > 0) {
    if (earlier.empty()) {
      return make_error(ErrorCode::kUnsupported,
                        "'{}' is there, and beside it no '{}' that says what made it; another file, or --overwrite to "
                        "begin anew",
                        path_, note_path());
    }
    const Json j = json_text(earlier);
    if (!j.is_object()) {
      return make_error(ErrorCode::kCorrupt, "'{}': damaged, expected a JSON object", note_path());
    }
    MINFER_TRY(compare_notes(path_, j, note));
    return scan(n_lines);
  }
  // The note comes first: results without one are nobody's.
  constexpr unsigned kMode = 0666;
  return replace_file(note_path(), note.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", kMode);
}

// Every line of the file as JSON, its head as we write it, every input's line once.
Status BatchOutput::take_line(std::string_view line, int64_t index, int64_t n_lines) {
  const auto damaged = [&](const char* what) {
    return make_error(ErrorCode::kCorrupt, "'{}': line {}: {}; mend it, or --overwrite to begin anew", path_, index,
                      what);
  };
  int64_t number = 0;
  uint64_t hash = 0;
  if (!line.starts_with(kHead)) return damaged("no result of a batch");
  const char* const end = line.data() + line.size();
  const auto n = std::from_chars(line.data() + kHead.size(), end, number);
  std::string_view rest(n.ptr, static_cast<size_t>(end - n.ptr));
  constexpr size_t kDigits = 16;
  if (n.ec != std::errc{} || !rest.starts_with(kHash) || rest.size() < kHash.size() + kDigits) {
    return damaged("no result of a batch");
  }
  rest.remove_prefix(kHash.size());
  const auto h = std::from_chars(rest.data(), rest.data() + kDigits, hash, 16);
  if (h.ec != std::errc{} || h.ptr != rest.data() + kDigits || hash == 0) return damaged("no result of a batch");
  if (number < 1 || number > n_lines) {
    return make_error(ErrorCode::kUnsupported,
                      "'{}' holds the result of line {}, the input has {} lines: not its input", path_, number,
                      n_lines);
  }
  if (line.find('\0') != line.npos || !nlohmann::json::accept(line)) return damaged("no JSON");
  if (done_.size() <= static_cast<size_t>(number)) done_.resize(static_cast<size_t>(number) + 1);
  if (done_[static_cast<size_t>(number)] != 0) return damaged("the second result of the same line");
  done_[static_cast<size_t>(number)] = hash;
  ++n_done_;
  return {};
}

Status BatchOutput::scan(int64_t n_lines) {
  constexpr size_t kBuffer = size_t{1} << 20;
  std::vector<char> buffer(kBuffer);
  std::string line;
  int64_t index = 0;
  off_t at = 0, whole = 0;  // where reading stands; the end of the last whole line
  for (;;) {
    const ssize_t n = ::pread(fd_, buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(path_, "reading failed");
    if (n == 0) break;
    if (interrupted()) return make_error(ErrorCode::kCancelled, "interrupted");
    std::string_view piece(buffer.data(), static_cast<size_t>(n));
    at += n;
    for (size_t end = piece.find('\n'); end != piece.npos; end = piece.find('\n')) {
      line += piece.substr(0, end);
      piece.remove_prefix(end + 1);
      MINFER_TRY(take_line(line, ++index, n_lines));
      line.clear();
      whole = at - static_cast<off_t>(piece.size());
    }
    line += piece;
    if (line.size() > kMaxResultBytes) {
      return make_error(ErrorCode::kCorrupt, "'{}': line {}: more than {} bytes", path_, index + 1, kMaxResultBytes);
    }
  }
  // Half a line: the program was ended while it wrote.
  if (whole < at && ::ftruncate(fd_, whole) != 0) return system_error(path_, "cannot cut off half a line");
  return {};
}

uint64_t BatchOutput::done(int64_t number) const {
  return static_cast<size_t>(number) < done_.size() ? done_[static_cast<size_t>(number)] : 0;
}

Status BatchOutput::append(std::string_view line) {
  while (!line.empty()) {
    const ssize_t n = ::write(fd_, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return system_error(path_, "writing failed");
    dirty_ = true;
    line.remove_prefix(static_cast<size_t>(n));
  }
  return sync_if_due();
}

Status BatchOutput::sync_if_due() {
  constexpr int64_t kEveryNs = 1'000'000'000;
  const int64_t now = now_ns();
  if (!dirty_ || now - synced_ns_ < kEveryNs) return {};
  return sync();
}

Status BatchOutput::sync() {
  if (dirty_ && ::fdatasync(fd_) != 0 && errno != EINVAL) return system_error(path_, "writing failed");
  dirty_ = false;
  synced_ns_ = now_ns();
  return {};
}

}  // namespace minfer::cli
