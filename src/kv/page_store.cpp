// One file a page, written beside its place and renamed.
#include "kv/page_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <filesystem>
#include <vector>

#include "base/atomic_file.h"
#include "base/file.h"

namespace minfer {
namespace fs = std::filesystem;
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kMaxIdentityBytes = 64 << 10;
static_assert(std::endian::native == std::endian::little, "page files hold little-endian integers");

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string_view view_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<PageStore> PageStore::open(PageStoreOptions options) {
  PageStore s;
  s.root_ = Sha256().update(std::as_bytes(std::span(options.identity))).finish();
  s.folder_ = options.dir + "/" + to_hex(s.root_).substr(0, 32);
  s.options_ = std::move(options);
  std::error_code ec;
  fs::create_directories(s.folder_, ec);
  if (ec) return make_error(ErrorCode::kIo, "[kv store] '{}': cannot make the folder: {}", s.folder_, ec.message());
  const std::string about = s.folder_ + "/identity.txt";
  // For people: the folder's name says the same, and so does every page. A damaged one is written anew.
  const auto found_about = read_regular_file(about, kMaxIdentityBytes);
  if (!found_about.ok() || *found_about != s.options_.identity)
    MINFER_TRY_CTX(replace_file(about, s.options_.identity, 0600), "[kv store]");
  struct Found {
    fs::file_time_type time;
    std::string name;
    int64_t bytes;
  };
  std::vector<Found> found;
  for (fs::directory_iterator it(s.folder_, ec); !ec && it != fs::directory_iterator(); it.increment(ec)) {
    const std::string name = it->path().stem().string();
    const bool is_key = name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
    std::error_code gone;
    if (it->path().extension() != ".kv" || !is_key || !it->is_regular_file(gone)) continue;
    const auto bytes = static_cast<int64_t>(it->file_size(gone));
    const auto time = it->last_write_time(gone);
    if (!gone) found.push_back({time, name, bytes});
  }
  if (ec) return make_error(ErrorCode::kIo, "[kv store] '{}': cannot list the folder: {}", s.folder_, ec.message());
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.time < b.time; });
  for (const Found& f : found) s.add(f.name, f.bytes);
  return s;
}

PageStore::Key PageStore::key_of(const Key& before, std::span<const int32_t> ids) const {
  return Sha256().update(before).update(std::as_bytes(ids)).finish();
}

void PageStore::touch(const std::string& name) {
  Page& p = pages_.at(name);
  by_use_.erase(p.used);
  p.used = ++clock_;
  by_use_.emplace(p.used, name);
}

void PageStore::add(const std::string& name, int64_t bytes) {
  pages_[name] = {++clock_, bytes};
  by_use_.emplace(clock_, name);
  bytes_ += bytes;
}

void PageStore::remove(const std::string& name) {
  const auto it = pages_.find(name);
  if (it == pages_.end()) return;
  bytes_ -= it->second.bytes;
  by_use_.erase(it->second.used);
  pages_.erase(it);
  ::unlink(path(name).c_str());
}

std::string PageStore::header(const Key& before, std::span<const int32_t> ids,
                              std::span<const std::byte> payload) const {
  std::string h = "minferkv";
  append(h, kVersion);
  append(h, static_cast<uint32_t>(options_.page_size));
  append(h, static_cast<uint64_t>(payload.size()));
  append(h, root_);
  append(h, before);
  h.append(view_of(std::as_bytes(ids)));
  append(h, Sha256().update(std::as_bytes(std::span(h))).update(payload).finish());
  return h;
}

std::span<const int32_t> PageStore::page_ids(std::span<const int32_t> ids, int32_t page) const {
  const auto size = static_cast<size_t>(options_.page_size);
  return ids.subspan(static_cast<size_t>(page) * size, size);
}

int32_t PageStore::count(const Key& before, std::span<const int32_t> ids) const {
  const auto most = static_cast<int32_t>(ids.size() / static_cast<size_t>(options_.page_size));
  Key key = before;
  for (int32_t i = 0; i < most; ++i) {
    key = key_of(key, page_ids(ids, i));
    if (!has(key)) return i;
  }
  return most;
}

Result<std::optional<std::span<const std::byte>>> PageStore::read(const Key& before, const Key& key,
                                                                  std::span<const int32_t> ids,
                                                                  std::vector<std::byte>& buffer) const {
  const std::string file = path(to_hex(key));
  const size_t head = header(before, ids, {}).size();
  buffer.resize(head + static_cast<size_t>(options_.payload_bytes) + 1);  // a longer file shows
  auto n = read_regular_file(file, buffer);
  if (!n.ok()) {
    if (n.error().code == ErrorCode::kNotFound) return std::optional<std::span<const std::byte>>();
    return std::move(n).error().with_context("[kv store]");
  }
  const std::span<const std::byte> payload = std::span(buffer).subspan(head, buffer.size() - 1 - head);
  if (*n == buffer.size() - 1 && header(before, ids, payload) == view_of(std::span(buffer).first(head)))
    return std::optional(payload);
  return make_error(ErrorCode::kCorrupt,
                    "[kv store] '{}': damaged, or not the page that its name says ({} bytes, expected {})", file, *n,
                    buffer.size() - 1);
}

PageStore::Loaded PageStore::load(const Key& before, std::span<const int32_t> ids, ThreadPool& pool, const Take& take) {
  const int32_t n = count(before, ids);
  std::vector<Key> keys = {before};  // that of page i at i + 1
  for (int32_t i = 0; i < n; ++i) keys.push_back(key_of(keys.back(), page_ids(ids, i)));
  std::vector<Result<bool>> found(static_cast<size_t>(n), false);
  std::atomic<int32_t> next{0};
  const Status ran = pool.run([&](Worker&) {
    std::vector<std::byte> buffer;
    for (int32_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) {
      const auto k = static_cast<size_t>(i);
      auto payload = read(keys[k], keys[k + 1], page_ids(ids, i), buffer);
      if (!payload.ok()) {
        found[k] = std::move(payload).error();
      } else if (*payload) {
        take(i, **payload);
        found[k] = true;
      }
    }
  });
  MINFER_CHECK(ran.ok());  // nothing in it calls fail()
  Loaded out;
  bool gap = false;
  for (size_t k = 0; k < found.size(); ++k) {
    const Result<bool>& f = found[k];
    const std::string name = to_hex(keys[k + 1]);
    if (!f.ok() || !*f) {  // damaged, or another process removed it; those behind it are of use when this one is back
      remove(name);
      gap = true;
      out.n_damaged += f.ok() ? 0 : 1;
      continue;
    }
    touch(name);
    ::utimensat(AT_FDCWD, path(name).c_str(), nullptr, 0);  // used now, for the order after a restart
    if (!gap) ++out.n;
  }
  return out;
}

Status PageStore::save(const Key& before, std::span<const int32_t> ids, std::span<const std::byte> payload) {
  const std::string name = to_hex(key_of(before, ids));
  if (pages_.count(name) > 0) {
    touch(name);
    return {};
  }
  const std::string head = header(before, ids, payload);
  const auto bytes = static_cast<int64_t>(head.size() + payload.size());
  if (bytes > options_.max_bytes) return {};
  while (bytes_ + bytes > options_.max_bytes) remove(std::string(by_use_.begin()->second));
  AtomicFile file = MINFER_TRY_CTX(AtomicFile::create(path(name)), "[kv store]");
  MINFER_TRY_CTX(file.write(std::as_bytes(std::span(head))), "[kv store]");
  MINFER_TRY_CTX(file.write(payload), "[kv store]");
  MINFER_TRY_CTX(file.commit(/*sync=*/false), "[kv store]");  // a damaged page is found by its checksum
  add(name, bytes);
  return {};
}

}  // namespace minfer
