// One pass over the nodes.
#include "plan/liveness.h"

#include <algorithm>

namespace minfer {

std::vector<Lifetime> lifetimes(const Graph& graph) {
  std::vector<Lifetime> life(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId id : graph.nodes[n].outputs) {
      life[static_cast<size_t>(id)] = {static_cast<int32_t>(n), static_cast<int32_t>(n)};
    }
    for (ValueId id : graph.nodes[n].inputs) {
      if (id == kNoValue) continue;
      auto& l = life[static_cast<size_t>(id)];
      if (l.first >= 0) l.last = std::max(l.last, static_cast<int32_t>(n));
    }
  }
  for (ValueId id : graph.outputs) {
    auto& l = life[static_cast<size_t>(id)];
    if (l.first >= 0) l.last = static_cast<int32_t>(graph.nodes.size());
  }
  return life;
}

}  // namespace minfer
