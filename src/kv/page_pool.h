// PagePool: which pages of the KV regions are free and how many owners the others have. A page is page_size rows of
// every layer's K and V.
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace minfer {

class PagePool {
 public:
  explicit PagePool(int32_t n_pages);

  // Takes one free page for one owner; -1 when none is free. Changes: pages_free().
  int32_t take();
  // One more owner of a page. Requires: it has one.
  void share(int32_t page);
  // One owner less; without any the page is free. Requires: it has one.
  void give(int32_t page);

  int32_t owners(int32_t page) const { return owners_[static_cast<size_t>(page)]; }
  int32_t pages_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t pages_total() const { return static_cast<int32_t>(owners_.size()); }

  // Compares with a count made elsewhere: `owners` [pages_total]. Errors: kInternal, naming the first page that
  // differs.
  Status check_integrity(std::span<const int32_t> owners) const;

 private:
  std::vector<int32_t> free_;  // the next page to hand out is last; ascending at the start
  std::vector<int32_t> owners_;
};

}  // namespace minfer
