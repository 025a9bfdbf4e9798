// PagePool: which pages of the KV regions are free. A page is page_size rows of every layer's K and V.
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace minfer {

class PagePool {
 public:
  explicit PagePool(int32_t n_pages);
  // Takes n pages or none. Errors: kResourceExhausted with the numbers. Changes: pages_free().
  Result<std::vector<int32_t>> take(int32_t n);
  // Gives a page back. Requires: it is taken.
  void give(int32_t page);
  int32_t pages_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t pages_total() const { return static_cast<int32_t>(taken_.size()); }

 private:
  std::vector<int32_t> free_;  // the next page to hand out is last; ascending at the start
  std::vector<bool> taken_;
};

}  // namespace minfer
