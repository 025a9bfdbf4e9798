// A stack of free pages and a count of owners.
#include "kv/page_pool.h"

namespace minfer {

PagePool::PagePool(int32_t n_pages) : owners_(static_cast<size_t>(n_pages), 0) {
  free_.reserve(static_cast<size_t>(n_pages));
  for (int32_t p = n_pages - 1; p >= 0; --p) free_.push_back(p);
}

int32_t PagePool::take() {
  if (free_.empty()) return -1;
  const int32_t page = free_.back();
  free_.pop_back();
  owners_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::share(int32_t page) {
  MINFER_CHECK(page >= 0 && page < pages_total() && owners_[static_cast<size_t>(page)] > 0);
  ++owners_[static_cast<size_t>(page)];
}

void PagePool::give(int32_t page) {
  MINFER_CHECK(page >= 0 && page < pages_total() && owners_[static_cast<size_t>(page)] > 0);
  if (--owners_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

Status PagePool::check_integrity(std::span<const int32_t> owners) const {
  MINFER_CHECK(owners.size() == owners_.size());
  std::vector<bool> is_free(owners_.size(), false);
  for (int32_t page : free_) {
    if (page < 0 || page >= pages_total() || is_free[static_cast<size_t>(page)])
      return make_error(ErrorCode::kInternal, "[kv] page {} is twice or wrongly among the free ones", page);
    is_free[static_cast<size_t>(page)] = true;
  }
  for (size_t p = 0; p < owners_.size(); ++p) {
    if (owners_[p] != owners[p] || is_free[p] != (owners_[p] == 0)) {
      return make_error(ErrorCode::kInternal, "[kv] page {}: {} owners are on record, {} were found, free: {}", p,
                        owners_[p], owners[p], static_cast<bool>(is_free[p]));
    }
  }
  return {};
}

}  // namespace minfer
