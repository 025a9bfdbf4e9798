// Nodes in one array, found by a hash of (parent, ids).
#include "kv/radix_tree.h"

#include <algorithm>
#include <random>

namespace minfer {

RadixTree::RadixTree(PagePool& pool, int32_t page_size) : pool_(pool), page_size_(static_cast<size_t>(page_size)) {
  std::random_device random;
  salt_ = uint64_t{random()} << 32 | random();
  nodes_.emplace_back();
  ids_.resize(page_size_);
}

std::span<const int32_t> RadixTree::ids(Node node) const {
  return {ids_.data() + static_cast<size_t>(node) * page_size_, page_size_};
}

uint64_t RadixTree::hash_of(Node parent, std::span<const int32_t> ids) const {
  uint64_t h = salt_ ^ static_cast<uint64_t>(parent) * 0x9E3779B97F4A7C15u;
  for (int32_t id : ids) {  // a multiply-and-fold step per id
    const auto x = static_cast<unsigned __int128>(h ^ static_cast<uint32_t>(id)) * 0xD6E8FEB86659FD93u;
    h = static_cast<uint64_t>(x) ^ static_cast<uint64_t>(x >> 64) ^ salt_;
  }
  return h;
}

RadixTree::Node RadixTree::child(Node node, std::span<const int32_t> ids) const {
  const auto [begin, end] = by_hash_.equal_range(hash_of(node, ids));
  for (auto it = begin; it != end; ++it) {
    if (parent(it->second) == node && std::ranges::equal(this->ids(it->second), ids)) return it->second;
  }
  return kNone;
}

RadixTree::Node RadixTree::insert(Node parent, std::span<const int32_t> ids, int32_t page) {
  MINFER_DCHECK(ids.size() == page_size_ && (parent == kRoot || at(parent).pins > 0));
  Node node;
  if (unused_.empty()) {
    node = static_cast<Node>(nodes_.size());
    nodes_.emplace_back();
    ids_.resize(ids_.size() + page_size_);
  } else {
    node = unused_.back();
    unused_.pop_back();
  }
  std::copy(ids.begin(), ids.end(), ids_.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(node) * page_size_));
  const uint64_t hash = hash_of(parent, ids);
  at(node) = {parent, page, 0, 0, ++clock_, hash};
  by_hash_.emplace(hash, node);
  pool_.share(page);
  ++n_nodes_;
  ++at(parent).n_children;
  idle_leaves_.emplace(clock_, node);
  return node;
}

void RadixTree::pin_child(Node child) {
  NodeData& n = at(child);
  if (n.pins++ > 0) return;
  ++n_pinned_;
  if (n.n_children == 0) idle_leaves_.erase({n.used, child});
}

void RadixTree::pin(Node node) {
  for (; node != kRoot; node = parent(node)) pin_child(node);
}

void RadixTree::unpin_up(Node node, int32_t levels) {
  const uint64_t now = ++clock_;
  for (; levels > 0 && node != kRoot; --levels, node = parent(node)) {
    NodeData& n = at(node);
    MINFER_CHECK(n.pins > 0);
    n.used = now;
    if (--n.pins > 0) continue;
    --n_pinned_;
    if (n.n_children == 0) idle_leaves_.emplace(now, node);
  }
}

void RadixTree::unpin(Node node) { unpin_up(node, INT32_MAX); }

RadixTree::Node RadixTree::ancestor(Node node, int32_t levels) const {
  for (; levels > 0 && node != kRoot; --levels) node = parent(node);
  return node;
}

int32_t RadixTree::remove(Node node) {
  NodeData& n = at(node);
  idle_leaves_.erase({n.used, node});
  const auto [begin, end] = by_hash_.equal_range(n.hash);
  by_hash_.erase(std::find_if(begin, end, [&](const auto& e) { return e.second == node; }));
  const Node parent = n.parent;
  const int32_t page = n.page;
  n = NodeData{};
  unused_.push_back(node);
  --n_nodes_;
  NodeData& p = at(parent);
  if (--p.n_children == 0 && is_idle_leaf(p)) idle_leaves_.emplace(p.used, parent);
  return page;
}

int32_t RadixTree::take(Node leaf) {
  MINFER_CHECK(leaf != kRoot && is_idle_leaf(at(leaf)));
  return remove(leaf);
}

bool RadixTree::evict() {
  if (idle_leaves_.empty()) return false;
  const Node node = idle_leaves_.begin()->second;
  if (on_evict) on_evict(node);
  pool_.give(remove(node));
  return true;
}

void RadixTree::clear() {
  while (!idle_leaves_.empty()) pool_.give(remove(idle_leaves_.begin()->second));
}

std::vector<RadixTree::Node> RadixTree::all() const {
  std::vector<Node> out;
  std::vector<bool> listed(nodes_.size(), false);
  std::vector<Node> path;
  for (Node node = 1; node < static_cast<Node>(nodes_.size()); ++node) {
    if (page(node) < 0) continue;
    for (Node up = node; up != kRoot && !listed[static_cast<size_t>(up)]; up = parent(up)) {
      listed[static_cast<size_t>(up)] = true;
      path.push_back(up);
    }
    for (; !path.empty(); path.pop_back()) out.push_back(path.back());
  }
  return out;
}

Status RadixTree::check_integrity(std::span<int32_t> owners) const {
  const auto wrong = [](Node node, const char* what) {
    return make_error(ErrorCode::kInternal, "[kv] node {} of the prefix tree: {}", node, what);
  };
  std::vector<int32_t> children(nodes_.size(), 0), pins_below(nodes_.size(), 0);
  int32_t n_nodes = 0, n_pinned = 0;
  size_t n_idle_leaves = 0;
  for (Node node = 1; node < static_cast<Node>(nodes_.size()); ++node) {
    const NodeData& n = nodes_[static_cast<size_t>(node)];
    if (n.page < 0) continue;
    ++n_nodes;
    n_pinned += n.pins > 0 ? 1 : 0;
    if (n.page >= static_cast<int32_t>(owners.size())) return wrong(node, "its page is out of range");
    ++owners[static_cast<size_t>(n.page)];
    if (n.parent < 0 || n.parent >= static_cast<Node>(nodes_.size())) return wrong(node, "its parent is out of range");
    if (n.parent != kRoot && page(n.parent) < 0) return wrong(node, "its parent is not in use");
    ++children[static_cast<size_t>(n.parent)];
    pins_below[static_cast<size_t>(n.parent)] += n.pins;
    if (n.hash != hash_of(n.parent, ids(node)) || child(n.parent, ids(node)) != node)
      return wrong(node, "it is not found by its ids");
    if (is_idle_leaf(n)) {
      ++n_idle_leaves;
      if (idle_leaves_.count({n.used, node}) == 0) return wrong(node, "it could be evicted but is not listed");
    }
  }
  for (Node node = 0; node < static_cast<Node>(nodes_.size()); ++node) {
    const NodeData& n = nodes_[static_cast<size_t>(node)];
    if (n.n_children != children[static_cast<size_t>(node)]) return wrong(node, "the count of its children is wrong");
    if (node != kRoot && n.page >= 0 && n.pins < pins_below[static_cast<size_t>(node)])
      return wrong(node, "it has fewer pins than its children");
  }
  if (n_nodes != n_nodes_ || n_pinned != n_pinned_ || n_idle_leaves != idle_leaves_.size())
    return wrong(kRoot, "the counts of nodes, pinned ones and idle leaves are wrong");
  return {};
}

}  // namespace minfer
