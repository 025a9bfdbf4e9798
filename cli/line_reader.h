// Lines typed at a prompt or piped in.
// Threads: one reader at a time.
#pragma once

#include <cstddef>
#include <string>

#include "minfer/error.h"

namespace minfer::cli {

enum class LineEnd { kLine, kEof, kInterrupted };

// The next line into `line`, without its end. At a terminal it is edited, with a history, and `prompt` is shown on
// stderr. Returns kInterrupted after Ctrl-C. Errors: a line of more than `limit` bytes, whose rest is skipped; reading
// failed.
Result<LineEnd> read_line(const std::string& prompt, std::string& line, size_t limit);

// The two halves: stdin as it is, and a terminal on both sides.
Result<LineEnd> read_plain_line(std::string& line, size_t limit);
Result<LineEnd> read_terminal_line(const std::string& prompt, std::string& line, size_t limit);

}  // namespace minfer::cli
