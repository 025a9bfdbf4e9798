// Tables, sharing and copying.
#include "kv/kv_tables.h"

#include <algorithm>

namespace minfer {

KvTables::KvTables(KvTablesOptions options)
    : options_(std::move(options)),
      pool_(options_.n_pages),
      tree_(pool_, options_.page_size),
      tables_(static_cast<size_t>(options_.n_seqs)) {}

bool KvTables::is_open(int32_t seq) const {
  return seq >= 0 && static_cast<size_t>(seq) < tables_.size() && at(seq).open;
}

std::span<const int32_t> KvTables::page_ids(std::span<const int32_t> ids, int32_t page) const {
  const auto size = static_cast<size_t>(options_.page_size);
  return ids.subspan(static_cast<size_t>(page) * size, size);
}

Result<int32_t> KvTables::open() {
  const auto it = std::find_if(tables_.begin(), tables_.end(), [](const Table& t) { return !t.open; });
  if (it == tables_.end())
    return make_error(ErrorCode::kResourceExhausted, "[kv] all {} sequences are open", tables_.size());
  it->open = true;
  ++n_open_;
  return static_cast<int32_t>(it - tables_.begin());
}

Result<int32_t> KvTables::fork(int32_t seq) {
  const int32_t copy = MINFER_TRY(open());
  truncate(seq, length(seq));  // reserved pages stay out of it
  Table& t = at(copy);
  t = at(seq);
  for (int32_t page : t.pages) pool_.share(page);
  tree_.pin(t.node);
  return copy;
}

void KvTables::close(int32_t seq) {
  truncate(seq, 0);
  at(seq).open = false;
  --n_open_;
}

int32_t KvTables::attach(int32_t seq, std::span<const int32_t> ids, int32_t limit) {
  Table& t = at(seq);
  MINFER_DCHECK(t.length == t.in_tree * options_.page_size);
  limit = std::min(limit, static_cast<int32_t>(std::min<size_t>(ids.size(), INT32_MAX)));
  bool trimmed = false;
  while (t.length + options_.page_size <= limit) {
    const auto child = tree_.child(t.node, page_ids(ids, t.in_tree));
    if (child == RadixTree::kNone) break;
    if (!trimmed) truncate(seq, t.length);
    trimmed = true;
    tree_.pin_child(child);
    pool_.share(tree_.page(child));
    t.pages.push_back(tree_.page(child));
    t.node = child;
    ++t.in_tree;
    t.length += options_.page_size;
  }
  return t.length;
}

int32_t KvTables::match(std::span<const int32_t> ids, int32_t limit) const {
  limit = std::min(limit, static_cast<int32_t>(std::min<size_t>(ids.size(), INT32_MAX)));
  int32_t n = 0;
  for (auto node = RadixTree::kRoot; (n + 1) * options_.page_size <= limit; ++n) {
    node = tree_.child(node, page_ids(ids, n));
    if (node == RadixTree::kNone) break;
  }
  return n * options_.page_size;
}

int32_t KvTables::take() {
  while (pool_.pages_free() == 0 && tree_.evict()) {
  }
  return pool_.take();
}

Status KvTables::reserve(int32_t seq, int32_t n) {
  Table& t = at(seq);
  if (n <= t.length) return {};
  const int32_t more = std::max(0, pages_for(n) - static_cast<int32_t>(t.pages.size()));
  // The page of the next row, when some of its rows are kept and others own it too.
  int32_t copied = t.length % options_.page_size != 0 ? t.length / options_.page_size : -1;
  if (copied >= 0 && pool_.owners(t.pages[static_cast<size_t>(copied)]) == 1) copied = -1;
  const int32_t want = more + (copied >= 0 ? 1 : 0);
  const size_t before = t.pages.size();
  while (static_cast<int32_t>(t.pages.size() - before) < want) {
    const int32_t page = take();
    if (page < 0) {
      for (; t.pages.size() > before; t.pages.pop_back()) pool_.give(t.pages.back());
      return make_error(ErrorCode::kResourceExhausted, "[kv] {} pages wanted for {} positions, {} of {} are free", want,
                        n, pool_.pages_free(), pool_.pages_total());
    }
    t.pages.push_back(page);
  }
  if (copied >= 0) {
    options_.copy_page(t.pages[static_cast<size_t>(copied)], t.pages.back());
    std::swap(t.pages[static_cast<size_t>(copied)], t.pages.back());
    pool_.give(t.pages.back());
    t.pages.pop_back();
    leave_tree(t, copied);
  }
  return {};
}

void KvTables::leave_tree(Table& t, int32_t pages) {
  if (t.in_tree <= pages) return;
  const auto node = tree_.ancestor(t.node, t.in_tree - pages);
  tree_.unpin_up(t.node, t.in_tree - pages);
  t.node = node;
  t.in_tree = pages;
}

void KvTables::set_length(int32_t seq, int32_t n) {
  Table& t = at(seq);
  MINFER_DCHECK(n >= t.length && pages_for(n) <= static_cast<int32_t>(t.pages.size()));
  t.length = n;
}

void KvTables::truncate(int32_t seq, int32_t n) {
  Table& t = at(seq);
  t.length = std::min(t.length, n);
  const int32_t kept = pages_for(t.length);
  leave_tree(t, kept);
  const auto keep = static_cast<size_t>(kept);
  for (; t.pages.size() > keep; t.pages.pop_back()) pool_.give(t.pages.back());
}

void KvTables::remember(int32_t seq, std::span<const int32_t> ids) {
  Table& t = at(seq);
  MINFER_CHECK(ids.size() >= static_cast<size_t>(t.length));
  for (; (t.in_tree + 1) * options_.page_size <= t.length; ++t.in_tree) {
    int32_t& page = t.pages[static_cast<size_t>(t.in_tree)];
    const auto of_page = page_ids(ids, t.in_tree);
    auto child = tree_.child(t.node, of_page);
    if (child == RadixTree::kNone) {
      child = tree_.insert(t.node, of_page, page);
    } else if (tree_.page(child) != page) {
      pool_.share(tree_.page(child));
      pool_.give(page);
      page = tree_.page(child);
    }
    tree_.pin_child(child);
    t.node = child;
  }
}

std::vector<int32_t> KvTables::tail_key(std::span<const int32_t> ids) const {
  std::vector<int32_t> key(static_cast<size_t>(options_.page_size), kNoId);
  std::copy(ids.begin(), ids.end(), key.begin());
  return key;
}

void KvTables::remember_tail(int32_t seq, std::span<const int32_t> ids) {
  Table& t = at(seq);
  const int32_t whole = t.in_tree * options_.page_size, rows = t.length - whole;
  if (rows <= 0 || rows >= options_.page_size) return;  // none, or the last page is the tree's and kept in part
  const auto key = tail_key(ids.subspan(static_cast<size_t>(whole), static_cast<size_t>(rows)));
  if (tree_.child(t.node, key) != RadixTree::kNone) return;
  tree_.insert(t.node, key, t.pages[static_cast<size_t>(t.in_tree)]);
}

int32_t KvTables::attach_tail(int32_t seq, std::span<const int32_t> ids, int32_t limit) {
  Table& t = at(seq);
  MINFER_DCHECK(t.length == t.in_tree * options_.page_size);
  limit = std::min(limit, static_cast<int32_t>(std::min<size_t>(ids.size(), INT32_MAX)));
  for (int32_t rows = std::min(options_.page_size - 1, limit - t.length); rows > 0; --rows) {
    const auto key = tail_key(ids.subspan(static_cast<size_t>(t.length), static_cast<size_t>(rows)));
    const auto tail = tree_.child(t.node, key);
    if (tail == RadixTree::kNone) continue;
    truncate(seq, t.length);
    t.pages.push_back(tree_.take(tail));
    t.length += rows;
    break;
  }
  return t.length;
}

RadixTree::Node KvTables::walk(std::span<const int32_t> ids) const {
  auto node = RadixTree::kRoot;
  const auto n = static_cast<int32_t>(ids.size()) / options_.page_size;
  for (int32_t p = 0; p < n && node != RadixTree::kNone; ++p) node = tree_.child(node, page_ids(ids, p));
  return node;
}

int32_t KvTables::find(std::span<const int32_t> ids) const {
  const auto node = walk(ids);
  return node == RadixTree::kNone || node == RadixTree::kRoot ? -1 : tree_.page(node);
}

int32_t KvTables::adopt(std::span<const int32_t> ids) {
  const auto size = static_cast<size_t>(options_.page_size);
  MINFER_DCHECK(!ids.empty() && ids.size() % size == 0);
  const auto parent = walk(ids.first(ids.size() - size));
  if (parent == RadixTree::kNone || tree_.child(parent, ids.last(size)) != RadixTree::kNone) return -1;
  tree_.pin(parent);  // making room must not take it
  const int32_t page = take();
  if (page >= 0) {
    tree_.insert(parent, ids.last(size), page);
    pool_.give(page);  // the tree's alone
  }
  tree_.unpin(parent);
  return page;
}

Status KvTables::check_integrity() const {
  std::vector<int32_t> owners(static_cast<size_t>(pool_.pages_total()), 0);
  MINFER_TRY(tree_.check_integrity(owners));
  int32_t n_open = 0;
  for (size_t s = 0; s < tables_.size(); ++s) {
    const Table& t = tables_[s];
    const auto wrong = [&](const char* what) {
      return make_error(ErrorCode::kInternal, "[kv] sequence {}: {}", s, what);
    };
    n_open += t.open ? 1 : 0;
    if (!t.open && (t.length != 0 || !t.pages.empty() || t.node != RadixTree::kRoot)) return wrong("closed, not empty");
    if (pages_for(t.length) > static_cast<int32_t>(t.pages.size())) return wrong("rows without pages");
    if (t.in_tree > pages_for(t.length)) return wrong("more pages in the tree than it has rows");
    auto node = t.node;
    for (int32_t i = t.in_tree; i-- > 0; node = tree_.parent(node)) {
      if (node == RadixTree::kRoot || tree_.page(node) != t.pages[static_cast<size_t>(i)])
        return wrong("its pages are not those of its path in the tree");
    }
    if (node != RadixTree::kRoot) return wrong("its path in the tree is longer than its pages");
    for (int32_t page : t.pages) {
      if (page < 0 || page >= pool_.pages_total()) return wrong("a page out of range");
      ++owners[static_cast<size_t>(page)];
    }
  }
  if (n_open != n_open_)
    return make_error(ErrorCode::kInternal, "[kv] {} sequences are open, counted {}", n_open, n_open_);
  return pool_.check_integrity(owners);
}

}  // namespace minfer
