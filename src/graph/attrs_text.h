// The attributes of a node that differ from their defaults, as (name, JSON text) pairs: for DOT and JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace minfer {

// Also the activation and rotation style where the op reads them, whatever their value.
std::vector<std::pair<std::string, std::string>> attrs_text(const Node& node);

// A JSON string literal with its quotes; also valid as a quoted DOT string.
std::string quoted(const std::string& text);

}  // namespace minfer
