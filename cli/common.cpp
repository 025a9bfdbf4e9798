// Errors, interrupts, files, the progress bar.
#include "common.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/stream_decode.h"

namespace minfer::cli {
namespace {

std::atomic<bool> interrupt_flag{false}, interrupt_polled{false};

void on_interrupt(int) {
  if (!interrupt_polled || interrupt_flag.exchange(true)) _exit(kInterrupted);
}

}  // namespace

std::string for_terminal(std::string_view text) {
  const std::string valid = utf8_replace(text);
  std::string out;
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto c = static_cast<unsigned char>(valid[i]);
    const auto next = i + 1 < valid.size() ? static_cast<unsigned char>(valid[i + 1]) : 0;
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else if (c == 0xc2 && next < 0xa0) {  // U+0080 to U+009F
      out += fmt::format("\\u00{:02x}", next);
      ++i;
    } else {
      out += valid[i];
    }
  }
  return out;
}

int report(const Error& error) {
  std::fprintf(stderr, "minfer: %s\n", for_terminal(error.message).c_str());
  if (error.code == ErrorCode::kCancelled) return kInterrupted;
  return error.code == ErrorCode::kInvalidArgument ? kBadArguments : kFailed;
}

Error fault_of_file(Error error) {
  if (error.code == ErrorCode::kInvalidArgument) error.code = ErrorCode::kCorrupt;
  return error;
}

const std::atomic<bool>& interrupted() { return interrupt_flag; }
void clear_interrupt() { interrupt_flag = false; }
void catch_interrupts() { interrupt_polled = true; }

void set_up_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

Result<std::string> read_stdin(size_t limit) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (interrupted()) return make_error(ErrorCode::kCancelled, "interrupted");
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return make_error(ErrorCode::kIo, "standard input: reading failed: {}", std::strerror(errno));
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > limit) return make_error(ErrorCode::kOutOfRange, "standard input: more than {} bytes", limit);
  }
}

Result<std::string> read_input(const std::string& path, size_t limit) {
  return path == "-" ? read_stdin(limit) : read_regular_file(path, limit);
}

Progress::Progress(std::string label, std::string unit)
    : label_(std::move(label)), unit_(std::move(unit)), start_ns_(now_ns()) {}

void Progress::update(int64_t done, int64_t total) {
  constexpr int64_t kFirstNs = 1'000'000'000, kEveryNs = 100'000'000;
  const int64_t now = now_ns();
  if (now - start_ns_ < kFirstNs || (now - drawn_ns_ < kEveryNs && done < total) || isatty(STDERR_FILENO) == 0 ||
      total <= 0)
    return;
  drawn_ns_ = now;
  drawn_ = true;
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(kWidth * done / total);
  const double seconds = static_cast<double>(now - start_ns_) * 1e-9, rate = static_cast<double>(done) / seconds;
  const double left = rate > 0 ? static_cast<double>(total - done) / rate : 0;
  const bool bytes = unit_ == "B";
  const double scale = bytes ? 1e-6 : 1;
  std::fprintf(stderr, "\r\033[K%s [%s%s] %3d%%  %.0f/%.0f %s  %.1f %s/s  %.0f s left", label_.c_str(),
               std::string(static_cast<size_t>(filled), '#').c_str(),
               std::string(static_cast<size_t>(kWidth - filled), ' ').c_str(), static_cast<int>(100 * done / total),
               static_cast<double>(done) * scale, static_cast<double>(total) * scale, bytes ? "MB" : unit_.c_str(),
               rate * scale, bytes ? "MB" : unit_.c_str(), left);
  std::fflush(stderr);
}

Progress::~Progress() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
}

}  // namespace minfer::cli
