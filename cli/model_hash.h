// The SHA-256 of models, kept under path, size and time of change in <cache folder>/model-sha256.json, so that a file
// is read once. Errors:  the file cannot be read; kCancelled on Ctrl-C. Threads: one.
#pragma once

#include <optional>
#include <string>

#include "gguf/reader.h"
#include "minfer/error.h"

namespace minfer::cli {

// Of the file's bytes; of a split model, of its parts one after the other.
Result<std::string> model_sha256(const gguf::File& file);

// The path of a model known to have this hash, whose file has not changed since; nullopt: none is known.
std::optional<std::string> model_with_sha256(const std::string& sha256);

}  // namespace minfer::cli
