// Whole files: reading one with a bound, replacing one in one step.
// Errors:  what is no regular file is refused and never waited for: a pipe, a device, a folder. The path and the reason
//          are named.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "minfer/error.h"

namespace minfer {

// The content of a regular file of at most `limit` bytes; symbolic links are followed.
Result<std::string> read_regular_file(const std::string& path, size_t limit);

// Its first bytes, at most as many as `out` holds; returns how many there were.
Result<size_t> read_regular_file(const std::string& path, std::span<std::byte> out);

// Puts `content` in the place of the file `path`, so that at any moment, also of a crash, there is the old file or the
// new one. Symbolic links are followed and stay; a file that was there keeps its mode; a new one gets `new_mode`
// less what the umask takes. With `locked`, the file is locked (flock) before it takes its place, as far as its file
// system can, and *locked is a descriptor of it for the caller to close.
// Errors: something is there that is no regular file, that may not be written or that is this program's standard input,
// output or error; the folder cannot be written; a full disk. Then nothing has changed.
Status replace_file(const std::string& path, std::string_view content, unsigned new_mode, int* locked = nullptr);

// Whether replace_file() would take this target. Errors: as there, for what is known before writing.
Status check_replaceable(const std::string& path);

}  // namespace minfer
