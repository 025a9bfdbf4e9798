// A terminal without readline: the prompt, then the line as the terminal itself edits it.
#include <cstdio>

#include "line_reader.h"

namespace minfer::cli {

Result<LineEnd> read_terminal_line(const std::string& prompt, std::string& line, size_t limit) {
  std::fputs(prompt.c_str(), stderr);
  std::fflush(stderr);
  return read_plain_line(line, limit);
}

}  // namespace minfer::cli
