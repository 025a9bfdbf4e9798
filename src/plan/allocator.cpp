// Greedy by size: the largest buffer first, each in the tightest gap among the already placed ones it meets in time.
// Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020.
#include "plan/allocator.h"

#include <algorithm>
#include <numeric>

namespace minfer {

int64_t place_allocations(std::vector<Allocation>& allocations, int64_t alignment) {
  std::vector<size_t> order(allocations.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return allocations[a].bytes > allocations[b].bytes; });
  std::vector<size_t> placed;  // sorted by offset
  int64_t total = 0;
  for (size_t i : order) {
    Allocation& a = allocations[i];
    const int64_t need = (a.bytes + alignment - 1) / alignment * alignment;
    int64_t end = 0, best = -1, best_gap = INT64_MAX;
    for (size_t j : placed) {
      const Allocation& b = allocations[j];
      if (b.last < a.first || a.last < b.first) continue;
      const int64_t gap = b.offset - end;
      if (gap >= need && gap < best_gap) best = end, best_gap = gap;
      end = std::max(end, b.offset + (b.bytes + alignment - 1) / alignment * alignment);
    }
    a.offset = best >= 0 ? best : end;
    total = std::max(total, a.offset + need);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t x, size_t y) { return allocations[x].offset < allocations[y].offset; }),
                  i);
  }
  return total;
}

}  // namespace minfer
