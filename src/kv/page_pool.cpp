// A stack of free pages.
#include "kv/page_pool.h"

namespace minfer {

PagePool::PagePool(int32_t n_pages) : taken_(static_cast<size_t>(n_pages), false) {
  for (int32_t p = n_pages - 1; p >= 0; --p) free_.push_back(p);
}

Result<std::vector<int32_t>> PagePool::take(int32_t n) {
  if (n > pages_free()) {
    return make_error(ErrorCode::kResourceExhausted, "[kv] {} pages wanted, {} of {} are free", n, pages_free(),
                      pages_total());
  }
  std::vector<int32_t> pages;
  for (int32_t i = 0; i < n; ++i) {
    pages.push_back(free_.back());
    taken_[static_cast<size_t>(free_.back())] = true;
    free_.pop_back();
  }
  return pages;
}

void PagePool::give(int32_t page) {
  MINFER_CHECK(page >= 0 && page < pages_total() && taken_[static_cast<size_t>(page)]);
  taken_[static_cast<size_t>(page)] = false;
  free_.push_back(page);
}

}  // namespace minfer
