// Errors, interrupts, files, the progress bar.
#include "common.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace minfer::cli {
namespace {

std::atomic<bool> interrupt_flag{false};

void on_interrupt(int) {
  if (interrupt_flag.exchange(true)) _exit(130);
}

}  // namespace

int report(const Error& error) {
  std::fprintf(stderr, "minfer: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalidArgument ? kBadArguments : kFailed;
}

const std::atomic<bool>& interrupted() { return interrupt_flag; }
void clear_interrupt() { interrupt_flag = false; }

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

namespace {

Result<std::string> read_all(FILE* f, const std::string& what, size_t limit) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const size_t n = std::fread(buffer, 1, sizeof buffer, f);
    text.append(buffer, n);
    if (text.size() > limit) return make_error(ErrorCode::kInvalidArgument, "{}: more than {} bytes", what, limit);
    if (n < sizeof buffer) break;
  }
  if (std::ferror(f)) return make_error(ErrorCode::kIo, "{}: reading failed: {}", what, std::strerror(errno));
  return text;
}

}  // namespace

Result<std::string> read_stdin(size_t limit) { return read_all(stdin, "standard input", limit); }

Result<std::string> read_file(const std::string& path, size_t limit) {
  FILE* f = std::fopen(path.c_str(), "rb");
  if (f == nullptr) return make_error(ErrorCode::kNotFound, "'{}': cannot open: {}", path, std::strerror(errno));
  auto text = read_all(f, "'" + path + "'", limit);
  std::fclose(f);
  return text;
}

Progress::Progress(std::string label, std::string unit) : label_(std::move(label)), unit_(std::move(unit)), start_ns_(now_ns()) {}

void Progress::update(int64_t done, int64_t total) {
  constexpr int64_t kFirstNs = 1'000'000'000, kEveryNs = 100'000'000;
  const int64_t now = now_ns();
  if (now - start_ns_ < kFirstNs || (now - drawn_ns_ < kEveryNs && done < total) || isatty(STDERR_FILENO) == 0 || total <= 0) return;
  drawn_ns_ = now;
  drawn_ = true;
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(kWidth * done / total);
  const double seconds = static_cast<double>(now - start_ns_) * 1e-9, rate = static_cast<double>(done) / seconds;
  const double left = rate > 0 ? static_cast<double>(total - done) / rate : 0;
  const bool bytes = unit_ == "B";
  const double scale = bytes ? 1e-6 : 1;
  std::fprintf(stderr, "\r\033[K%s [%s%s] %3d%%  %.0f/%.0f %s  %.1f %s/s  %.0f s left", label_.c_str(), std::string(static_cast<size_t>(filled), '#').c_str(),
               std::string(static_cast<size_t>(kWidth - filled), ' ').c_str(), static_cast<int>(100 * done / total), static_cast<double>(done) * scale,
               static_cast<double>(total) * scale, bytes ? "MB" : unit_.c_str(), rate * scale, bytes ? "MB" : unit_.c_str(), left);
  std::fflush(stderr);
}

Progress::~Progress() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
}

}  // namespace minfer::cli
