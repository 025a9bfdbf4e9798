// Offsets for buffers whose lifetimes are known: best fit into the gaps between buffers alive at the same time.
#pragma once

#include <cstdint>
#include <vector>

namespace minfer {

struct Allocation {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;  // alive from node `first` to node `last`, both included
  int64_t offset = -1;          // result
};

// Fills the offsets (multiples of `alignment`) and returns the bytes needed in all. Two allocations alive at the same
// node never overlap.
int64_t place_allocations(std::vector<Allocation>& allocations, int64_t alignment);

}  // namespace minfer
