// Lines from a pipe, and the choice between pipe and terminal.
#include "line_reader.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "common.h"

namespace minfer::cli {

Result<LineEnd> read_plain_line(std::string& line, size_t limit) {
  line.clear();
  bool too_long = false;
  for (;;) {
    const int c = std::fgetc(stdin);
    if (c == EOF) {
      if (interrupted()) return LineEnd::kInterrupted;
      if (std::ferror(stdin) != 0) {
        if (errno == EINTR) {
          std::clearerr(stdin);
          continue;
        }
        return make_error(ErrorCode::kIo, "standard input: reading failed: {}", std::strerror(errno));
      }
      if (line.empty() && !too_long) return LineEnd::kEof;
      break;
    }
    if (c == '\n') break;
    if (line.size() < limit) {
      line.push_back(static_cast<char>(c));
    } else {
      too_long = true;
    }
  }
  if (too_long) return make_error(ErrorCode::kOutOfRange, "a line of more than {} bytes was left out", limit);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return LineEnd::kLine;
}

Result<LineEnd> read_line(const std::string& prompt, std::string& line, size_t limit) {
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
  return terminal ? read_terminal_line(prompt, line, limit) : read_plain_line(line, limit);
}

}  // namespace minfer::cli
