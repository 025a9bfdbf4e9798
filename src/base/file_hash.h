// SHA-256, in hex, of whole files.
// Errors:  the path and the reason; kCancelled.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "minfer/error.h"

namespace minfer {

// Of the files' bytes, one file after the other. `progress(done, total)` is called now and then; false cancels.
Result<std::string> sha256_files(const std::vector<std::string>& paths,
                                 const std::function<bool(int64_t done, int64_t total)>& progress = {});

}  // namespace minfer
