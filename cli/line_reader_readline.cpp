// A terminal with readline: editing and a history of this conversation.
#include <readline/history.h>
#include <readline/readline.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "common.h"
#include "line_reader.h"

namespace minfer::cli {
namespace {

// Called some ten times a second while readline waits: the way to leave it that is safe after Ctrl-C.
int leave_when_interrupted() {
  if (interrupted()) rl_done = 1;
  return 0;
}

void set_up() {
  static bool done = false;
  if (done) return;
  done = true;
  rl_readline_name = "minfer";
  rl_outstream = stderr;  // stdout belongs to the answers
  rl_event_hook = leave_when_interrupted;
  rl_catch_signals = 0;  // common.cpp's handler sees Ctrl-C
  rl_bind_key('\t', rl_insert);
  stifle_history(1000);
}

}  // namespace

Result<LineEnd> read_terminal_line(const std::string& prompt, std::string& line, size_t limit) {
  set_up();
  char* text = readline(prompt.c_str());
  if (interrupted()) {
    std::free(text);
    return LineEnd::kInterrupted;
  }
  if (text == nullptr) return LineEnd::kEof;
  line = text;
  std::free(text);
  if (line.size() > limit)
    return make_error(ErrorCode::kOutOfRange, "a line of more than {} bytes was left out", limit);
  if (!line.empty()) add_history(line.c_str());
  return LineEnd::kLine;
}

}  // namespace minfer::cli
