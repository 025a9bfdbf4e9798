// PageStore: pages of K and V in files, so that prefixes outlive eviction and restarts. A page is found by all ids up
// to its end and by what made it; a file that does not match byte for byte is refused. Layout:  <dir>/<identity
// digest>/identity.txt, what made these pages, in words; beside it one file a page,
//          <key>.kv: "minferkv", u32 version, u32 page_size, u64 payload bytes, identity digest, key of the page
//          before, i32 ids[page_size], SHA-256 of all this and of the payload; then the payload, as
//          KvCache::read_page() gives it. Integers are little-endian. The key is the SHA-256 of (key of the page
//          before, ids); before the first page stands the identity's digest.
// Errors:  files and folders that cannot be made or read. A page that is damaged or not what its name says is deleted
// and counted.
// Threads: one thread at a time. Several processes may share a folder: files appear whole or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "base/thread_pool.h"

namespace minfer {

struct PageStoreOptions {
  std::string dir;
  std::string identity;  // model, numerics version, types and sizes: everything that decides the bytes
  int32_t page_size = 0;
  int64_t payload_bytes = 0;
  int64_t max_bytes = 0;  // of all files of this identity; the least recently used go first
};

class PageStore {
 public:
  using Key = Digest;

  // Makes the folder if it is not there and lists what it holds.
  static Result<PageStore> open(PageStoreOptions options);

  const Key& root() const { return root_; }
  Key key_of(const Key& before, std::span<const int32_t> ids) const;  // ids [page_size]

  bool has(const Key& key) const { return pages_.count(to_hex(key)) > 0; }
  // The pages from `first` on that hold `ids`, as far as they are there: reads them with all threads of `pool` and
  // hands over take(i, payload [payload_bytes]) for each that is whole, on any of the threads and in any order.
  struct Loaded {
    int32_t n = 0;          // pages from the first on without a gap; others that were handed over count for nothing
    int32_t n_damaged = 0;  // gone now, files included; the others stay
  };
  using Take = std::function<void(int32_t i, std::span<const std::byte> payload)>;
  Loaded load(const Key& before, std::span<const int32_t> ids, ThreadPool& pool, const Take& take);
  // How many pages of these ids are there, one after the other.
  int32_t count(const Key& before, std::span<const int32_t> ids) const;
  // Keeps a page; one that is there already is only marked as used.
  Status save(const Key& before, std::span<const int32_t> ids, std::span<const std::byte> payload);

  int64_t bytes() const { return bytes_; }
  int64_t n_pages() const { return static_cast<int64_t>(pages_.size()); }
  const std::string& folder() const { return folder_; }

 private:
  struct Page {
    uint64_t used;
    int64_t bytes;
  };
  PageStore() = default;
  std::string header(const Key& before, std::span<const int32_t> ids, std::span<const std::byte> payload) const;
  std::span<const int32_t> page_ids(std::span<const int32_t> ids, int32_t page) const;
  // The payload, in `buffer`; nullopt: no such file.
  Result<std::optional<std::span<const std::byte>>> read(const Key& before, const Key& key,
                                                         std::span<const int32_t> ids,
                                                         std::vector<std::byte>& buffer) const;
  std::string path(const std::string& name) const { return folder_ + "/" + name + ".kv"; }
  void touch(const std::string& name);
  void add(const std::string& name, int64_t bytes);
  void remove(const std::string& name);

  PageStoreOptions options_;
  std::string folder_;
  Key root_{};
  uint64_t clock_ = 0;
  int64_t bytes_ = 0;
  std::unordered_map<std::string, Page> pages_;  // by hex key
  std::map<uint64_t, std::string> by_use_;
};

}  // namespace minfer
