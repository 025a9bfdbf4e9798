// BatchInput: the lines of a batch's input, one at a time, numbered from 1, each with the hash that tells whether it is
// the line it was when it was answered.
// Errors:  no regular file; reading failed. A line that is too long is handed out without its text.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "minfer/error.h"

namespace minfer::cli {

// Far beyond any context: a token of four letters in JSON needs some five bytes.
inline constexpr size_t kMaxLineBytes = size_t{32} << 20;

struct BatchLine {
  int64_t number = 0;
  std::string text;   // without the line end; empty if too long
  uint64_t hash = 0;  // the first 64 bits of its SHA-256; never 0
  bool too_long = false;
  bool blank = false;  // nothing but white space: no request
};

class BatchInput {
 public:
  // Lines of more bytes than `max_line` are too long.
  static Result<BatchInput> open(const std::string& path, size_t max_line = kMaxLineBytes);
  BatchInput(BatchInput&& o) noexcept;
  BatchInput& operator=(BatchInput&&) = delete;
  ~BatchInput();

  // nullopt: the end.
  Result<std::optional<BatchLine>> next();
  // Whether the open file is the one with this descriptor.
  bool is_same_file(int fd) const;

 private:
  BatchInput(std::string path, int fd, size_t max_line) : path_(std::move(path)), fd_(fd), max_line_(max_line) {}
  Result<bool> fill();  // false: the end of the file

  std::string path_;
  int fd_ = -1;
  size_t max_line_;
  std::vector<char> buffer_;
  size_t at_ = 0, end_ = 0;
  int64_t number_ = 0;
};

// How many lines a file has that are not blank, and all of them. Errors: as above; kCancelled on Ctrl-C.
struct LineCount {
  int64_t lines = 0, requests = 0;
};
Result<LineCount> count_lines(const std::string& path);

// 16 hex digits.
std::string hash_text(uint64_t hash);

}  // namespace minfer::cli
