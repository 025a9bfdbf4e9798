// KvTables: the block tables of all open sequences over one pool of pages, and the prefix tree that lets sequences
// share them. It knows where K and V of a position lie, never what they are.
// A page with more than one owner is never written: the rows that count in it are copied to a fresh page first.
// Errors:  a method that fails has changed nothing, unless it says so.
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kv/page_pool.h"
#include "kv/radix_tree.h"

namespace minfer {

struct KvTablesOptions {
  int32_t n_pages = 0, page_size = 32;
  int32_t n_seqs = 1;  // open at once
  // Copies all rows of a page to another; needed where sequences are forked or cut inside shared pages.
  std::function<void(int32_t from, int32_t to)> copy_page;
};

class KvTables {
 public:
  explicit KvTables(KvTablesOptions options);

  // --- sequences. The methods below require an open one. ---
  Result<int32_t> open();             // an empty one. Errors: all n_seqs are open (kResourceExhausted)
  Result<int32_t> fork(int32_t seq);  // one that shares all rows of `seq`. Errors: as open()
  void close(int32_t seq);            // its pages go back, or stay with the tree if they are whole and remembered
  bool is_open(int32_t seq) const;

  // Gives an empty sequence, or one whose rows are all remembered whole pages, the longest prefix of `ids` that the
  // tree holds beyond what it has, in whole pages, at most `limit` positions in all. Returns its length then. Pages
  // that it had reserved are given back.
  int32_t attach(int32_t seq, std::span<const int32_t> ids, int32_t limit);
  // How long attach() would make a fresh sequence. Changes nothing.
  int32_t match(std::span<const int32_t> ids, int32_t limit) const;

  // Makes positions length(seq)..n-1 writable: takes pages, evicting from the tree when none is free, and copies the
  // page that the next row goes to when others own it too. Errors: kResourceExhausted with the numbers; what was
  // evicted is gone then.
  Status reserve(int32_t seq, int32_t n);
  void set_length(int32_t seq, int32_t n);  // rows up to n are stored. Requires: reserved
  void truncate(int32_t seq, int32_t n);    // forgets all but the first n positions, reserved pages included
  // Hands the whole pages of the sequence to the tree; `ids` = its ids, at least length(seq) of them. Where the tree
  // has a page of these ids already, the sequence uses that one from now on and gives its own back.
  void remember(int32_t seq, std::span<const int32_t> ids);

  // The rows after the last whole page. remember_tail() leaves their page to the tree when the sequence is closed next;
  // attach_tail() takes the longest such tail that `ids` go on with out of the tree and returns the sequence's length:
  // it has one owner, so nothing is copied, and the next to ask does not find it. Both require that all whole pages of
  // the sequence are in the tree; attach_tail() that it has no other rows, and gives pages that it reserved back.
  void remember_tail(int32_t seq, std::span<const int32_t> ids);
  int32_t attach_tail(int32_t seq, std::span<const int32_t> ids, int32_t limit);
  // Whether a node of the tree is a tail; its ids end with kNoId then.
  static bool is_tail(std::span<const int32_t> node_ids) { return node_ids.back() == kNoId; }
  static constexpr int32_t kNoId = -1;

  int32_t length(int32_t seq) const { return at(seq).length; }
  std::span<const int32_t> pages(int32_t seq) const { return at(seq).pages; }

  // For rows that come from elsewhere: a page of the tree for the last page_size of `ids`, after those before them. The
  // caller writes its rows before anything else happens. -1: it is there already, the page before it is not, or there
  // is no room. Requires: whole pages of ids.
  int32_t adopt(std::span<const int32_t> ids);
  // The page that holds the last page_size of `ids` in the tree, -1 when it is not there.
  int32_t find(std::span<const int32_t> ids) const;

  // --- all ---
  void forget_prefixes() { tree_.clear(); }  // of sequences that are closed
  int32_t page_size() const { return options_.page_size; }
  int32_t pages_for(int32_t n) const { return (n + options_.page_size - 1) / options_.page_size; }  // of n positions
  int32_t pages_total() const { return pool_.pages_total(); }
  int32_t pages_free() const { return pool_.pages_free(); }
  int32_t pages_cached() const { return tree_.pages_cached(); }
  int32_t pages_available() const { return pool_.pages_free() + tree_.pages_evictable(); }  // what reserve() can take
  int32_t seqs_open() const { return n_open_; }
  RadixTree& tree() { return tree_; }
  PagePool& pool() { return pool_; }

  // Recounts everything: owners of pages, tree, tables. Errors: kInternal, naming what is wrong. Linear in all of it.
  Status check_integrity() const;

 private:
  struct Table {
    bool open = false;
    int32_t length = 0;   // positions whose K and V are stored
    int32_t in_tree = 0;  // the first so many pages are those of the path to `node`, which this table pins; the last
                          // of them may be kept in part only (length inside it), then it is copied before a write
    RadixTree::Node node = RadixTree::kRoot;
    std::vector<int32_t> pages;
  };
  Table& at(int32_t seq) { return tables_[static_cast<size_t>(seq)]; }
  const Table& at(int32_t seq) const { return tables_[static_cast<size_t>(seq)]; }
  int32_t take();                            // a free page, if need be from the tree; -1
  void leave_tree(Table& t, int32_t pages);  // keeps the first `pages` pages in the tree pinned, and no more
  // The key of a tail: its ids, then kNoId.
  std::vector<int32_t> tail_key(std::span<const int32_t> ids) const;
  RadixTree::Node walk(std::span<const int32_t> ids) const;  // whole pages from the root; kNone
  std::span<const int32_t> page_ids(std::span<const int32_t> ids, int32_t page) const;

  KvTablesOptions options_;
  PagePool pool_;
  RadixTree tree_;
  std::vector<Table> tables_;
  int32_t n_open_ = 0;
};

}  // namespace minfer
