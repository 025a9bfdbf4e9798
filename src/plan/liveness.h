// When each activation is born and last read, in node order.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace minfer {

struct Lifetime {
  int32_t first = -1;  // node that writes it, -1: not an activation
  int32_t last = -1;   // last node that reads it; the number of nodes for graph outputs
};

std::vector<Lifetime> lifetimes(const Graph& graph);

}  // namespace minfer
