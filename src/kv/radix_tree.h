// RadixTree: which prefixes of token ids have their K and V in the cache. A node stands for one whole page: its ids,
// after those on the path to it. Two sequences that begin with the same pages of ids share these pages.
// A node's page stays while the node does; a pinned node stays, and with it all on its path. What is not pinned goes
// when pages are needed, least recently used first.
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kv/page_pool.h"

namespace minfer {

class RadixTree {
 public:
  using Node = int32_t;
  static constexpr Node kRoot = 0, kNone = -1;

  // `pool` outlives the tree; the tree is one owner of each of its pages.
  RadixTree(PagePool& pool, int32_t page_size);
  RadixTree(const RadixTree&) = delete;
  RadixTree& operator=(const RadixTree&) = delete;

  // The child of `node` whose page holds exactly `ids` [page_size], or kNone. Changes nothing.
  Node child(Node node, std::span<const int32_t> ids) const;
  // Makes that child with a page that holds K and V of `ids`, shared with the caller. Requires: it is not there, and
  // `parent` is pinned or the root.
  Node insert(Node parent, std::span<const int32_t> ids, int32_t page);

  // Removes a leaf that is not pinned and hands its page, with the tree's ownership of it, to the caller.
  int32_t take(Node leaf);

  // A pin holds a node and its path. The root needs none, but may have some. Constant time per level.
  void pin(Node node);
  void unpin(Node node);                     // the path becomes the most recently used
  void pin_child(Node child);                // moves a pin from a node to its child: constant time
  void unpin_up(Node node, int32_t levels);  // moves a pin up
  Node ancestor(Node node, int32_t levels) const;

  // Removes the least recently used leaf that is not pinned, and gives its page back. False when there is none.
  bool evict();
  // Called with each node's page before its eviction (spilling). May be empty.
  std::function<void(Node)> on_evict;
  void clear();  // evicts all that is not pinned; on_evict is not called

  std::vector<Node> all() const;  // nodes, each after its parent
  int32_t page(Node node) const { return nodes_[static_cast<size_t>(node)].page; }
  Node parent(Node node) const { return nodes_[static_cast<size_t>(node)].parent; }
  std::span<const int32_t> ids(Node node) const;
  int32_t pages_cached() const { return n_nodes_; }
  int32_t pages_evictable() const { return n_nodes_ - n_pinned_; }

  // Counts one owner for each page of the tree into `owners` and checks the tree itself. Errors: kInternal.
  Status check_integrity(std::span<int32_t> owners) const;

 private:
  struct NodeData {
    Node parent = kNone;
    int32_t page = -1;  // -1: the root, or a node that is not in use
    int32_t n_children = 0;
    int32_t pins = 0;  // of the node and everything below it
    uint64_t used = 0, hash = 0;
  };
  uint64_t hash_of(Node parent, std::span<const int32_t> ids) const;
  bool is_idle_leaf(const NodeData& n) const { return n.pins == 0 && n.n_children == 0 && n.page >= 0; }
  int32_t remove(Node node);  // its page, still owned
  NodeData& at(Node node) { return nodes_[static_cast<size_t>(node)]; }

  PagePool& pool_;
  const size_t page_size_;
  uint64_t salt_;  // makes collisions of the hash nothing a prompt can aim at
  uint64_t clock_ = 0;
  int32_t n_nodes_ = 0, n_pinned_ = 0;  // without the root
  std::vector<NodeData> nodes_;
  std::vector<int32_t> ids_;  // [nodes, page_size]
  std::vector<Node> unused_;
  std::unordered_multimap<uint64_t, Node> by_hash_;
  std::set<std::pair<uint64_t, Node>> idle_leaves_;  // by last use
};

}  // namespace minfer
