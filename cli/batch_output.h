// BatchOutput: the file of a batch's results and the note beside it, FILE.batch, which says what made them. Only ever
// appended to: whatever ends the program, the lines that are there stay, and the next run goes on behind them.
// Layout:  each line begins {"line":N,"line_hash":"16 hex digits", : the number of the input's line and its hash.
// Disk:    a line is one write; what was written is forced to the disk once a second and at the end, so that a crash of
//          the machine costs a second's lines, which are then answered again.
// Errors:  a file that is no batch's, or was made with another model or other settings (both values are named); a
//          damaged line; another process writes it; the disk is full.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "minfer/error.h"

namespace minfer::cli {

// Of one line. What one request may cost is bounded below this.
inline constexpr size_t kMaxResultBytes = size_t{4} << 30;

class BatchOutput {
 public:
  // Opens or makes the file and locks it. Nothing is changed yet.
  static Result<BatchOutput> open(const std::string& path);
  BatchOutput(BatchOutput&& o) noexcept;
  BatchOutput& operator=(BatchOutput&&) = delete;
  ~BatchOutput();

  // The number of positions that the earlier run had; 0: there was none.
  Result<int32_t> earlier_ctx() const;

  // Goes on with what is there, or begins. `note`: what made the results. `n_lines`: of the input. Reads the results
  // and cuts off half a line at the end.
  Status begin(const nlohmann::ordered_json& note, int64_t n_lines);
  // Throws away what is there: the file and its note.
  Status discard();

  int64_t n_done() const { return n_done_; }
  // The hash of an input's line that has its result; 0: it has none.
  uint64_t done(int64_t number) const;

  Status append(std::string_view line);  // with its line end
  Status sync_if_due();
  Status sync();

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }

 private:
  BatchOutput(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string note_path() const { return path_ + ".batch"; }
  Result<std::string> read_note() const;  // empty: there is none
  Status scan(int64_t n_lines);
  Status take_line(std::string_view line, int64_t index, int64_t n_lines);

  std::string path_;
  int fd_ = -1;
  std::vector<uint64_t> done_;  // by line number: 8 bytes a line of the input, only when a run is resumed
  int64_t n_done_ = 0;
  bool dirty_ = false;
  int64_t synced_ns_ = 0;
};

// The beginning of a result's line.
std::string line_head(int64_t number, uint64_t hash);

}  // namespace minfer::cli
