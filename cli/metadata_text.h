// GGUF metadata values for people and as JSON; long arrays are shown by their first elements and their length.
// Errors:  none: the reader has checked every value.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gguf/metadata.h"

namespace minfer::cli {

// A scalar as itself; an array as a list when it has at most `elements_max` elements, else as
// {"type": "...", "count": n, "first": [...]}. NaN and infinity become strings.
nlohmann::ordered_json metadata_json(const gguf::Value& value, size_t elements_max);

// One line: strings cut after some 80 bytes, control characters escaped.
std::string metadata_line(const gguf::Value& value);

}  // namespace minfer::cli
