// Turns, the overflow policies, and the file.
// Layout: "minferss", u32 version, u32 bytes of the identity text, the text; u32 ids, u32 system ids, u32 turns, u32
// pages,
//         u64 bytes per page; i32 ids[], i32 turns[]; the pages of the first ids, in order; SHA-256 of all before it.
//         Integers are little-endian.
#include <algorithm>
#include <cstring>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mmap.h"
#include "base/sha256.h"
#include "engine/engine_impl.h"
#include "engine/engine_store.h"
#include "minfer/session.h"

namespace minfer {
namespace {

constexpr char kMagic[8] = {'m', 'i', 'n', 'f', 'e', 'r', 's', 's'};
constexpr uint32_t kVersion = 1;

class Writer {
 public:
  explicit Writer(AtomicFile file) : file_(std::move(file)) {}
  Status put(std::span<const std::byte> bytes) {
    hash_.update(bytes);
    return file_.write(bytes);
  }
  template <typename T>
  Status put_value(const T& value) {
    return put(std::as_bytes(std::span(&value, 1)));
  }
  Status commit() {
    MINFER_TRY(file_.write(hash_.finish()));
    return file_.commit();
  }

 private:
  AtomicFile file_;
  Sha256 hash_;
};

// Reads the front of what is left; sticks at the end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}
  std::span<const std::byte> take(uint64_t n) {
    if (n > left_.size()) {
      failed_ = true;
      left_ = {};
      return {};
    }
    const auto out = left_.first(static_cast<size_t>(n));
    left_ = left_.subspan(static_cast<size_t>(n));
    return out;
  }
  template <typename T>
  T value() {
    T v{};
    if (const auto bytes = take(sizeof(T)); !bytes.empty()) std::memcpy(&v, bytes.data(), sizeof(T));
    return v;
  }
  std::vector<int32_t> ids(uint32_t n) {
    const auto bytes = take(uint64_t{n} * sizeof(int32_t));
    std::vector<int32_t> out(bytes.size() / sizeof(int32_t));
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  bool ok() const { return !failed_; }
  size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
  bool failed_ = false;
};

}  // namespace

ChatSession::ChatSession(Engine& engine, std::vector<int32_t> system, SessionOptions options)
    : engine_(&engine), options_(options), ids_(std::move(system)), n_system_(static_cast<int32_t>(ids_.size())) {}

// Leaves out what the policy says until n_new ids and an answer of n_answer fit.
Status ChatSession::fit(size_t n_new, int64_t n_answer, int32_t* dropped, std::vector<int32_t>* ids,
                        std::vector<int32_t>* turns) const {
  *ids = ids_;
  *turns = turns_;
  *dropped = 0;
  const int64_t n_ctx = engine_->n_ctx();
  // The last id of an answer needs no position.
  const auto over = [&] {
    return static_cast<int64_t>(ids->size() + n_new) + std::max<int64_t>(n_answer - 1, 0) - n_ctx;
  };
  const auto drop = [&](int32_t n) {
    const auto from = ids->begin() + n_system_;
    ids->erase(from, from + n);
    for (int32_t& t : *turns) t = std::max(t - n, n_system_);
    *dropped += n;
  };
  if (options_.overflow == Overflow::kTruncateOldestTurns) {
    while (over() > 0 && !turns->empty()) {
      drop((turns->size() > 1 ? (*turns)[1] : static_cast<int32_t>(ids->size())) - n_system_);
      turns->erase(turns->begin());
    }
  } else if (options_.overflow == Overflow::kShift && over() > 0) {
    drop(static_cast<int32_t>(std::min<int64_t>(over(), static_cast<int64_t>(ids->size()) - n_system_)));
    while (turns->size() > 1 && (*turns)[1] == n_system_) turns->erase(turns->begin());  // nothing is left of it
  }
  if (over() <= 0) return {};
  return make_error(
      ErrorCode::kOutOfRange,
      "[session] {} ids of the conversation, {} new ones and {} for the answer do not fit the context of {}",
      ids->size(), n_new, n_answer, n_ctx);
}

Result<ChatSession::Reply> ChatSession::reply(Request request) {
  if (request.n != 1) return make_error(ErrorCode::kInvalidArgument, "[session] n: found {}, expected 1", request.n);
  if (request.text) {
    const Tokenizer* tokenizer = engine_->model().tokenizer();
    if (!request.prompt.empty() || tokenizer == nullptr)
      return make_error(ErrorCode::kInvalidArgument, "[session] a text: expected no ids beside it and a vocabulary");
    request.prompt = MINFER_TRY(tokenizer->encode(*request.text, {ids_.empty(), request.parse_special}));
    request.text.reset();
  }
  Reply out;
  std::vector<int32_t> ids, turns;
  if (options_.room < 0)
    return make_error(ErrorCode::kInvalidArgument, "[session] room: found {}, expected 0 or more", options_.room);
  const int32_t room = options_.room > 0 ? options_.room : std::max(1, std::min(256, engine_->n_ctx() / 4));
  const int64_t n_answer = request.max_tokens >= 0 ? request.max_tokens : room;
  MINFER_TRY(fit(request.prompt.size(), n_answer, &out.ids_dropped, &ids, &turns));
  turns.push_back(static_cast<int32_t>(ids.size()));
  ids.insert(ids.end(), request.prompt.begin(), request.prompt.end());
  request.prompt = ids;
  out.response = MINFER_TRY(engine_->run(std::move(request)));
  const auto& answer = out.response.choices[0].ids;
  ids.insert(ids.end(), answer.begin(), answer.end());
  ids_ = std::move(ids);
  turns_ = std::move(turns);
  return out;
}

void ChatSession::cut(int32_t n_turns) {
  const auto n = static_cast<size_t>(n_turns);
  MINFER_DCHECK(n <= turns_.size());
  if (n >= turns_.size()) return;
  ids_.resize(static_cast<size_t>(turns_[n]));
  turns_.resize(n);
}

int32_t ChatSession::keep_prefix_of(std::span<const int32_t> ids) {
  const size_t limit = std::min(ids_.size(), ids.empty() ? 0 : ids.size() - 1);
  size_t n = 0;
  while (n < limit && ids_[n] == ids[n]) ++n;
  ids_.resize(n);
  const auto kept = static_cast<int32_t>(n);
  while (!turns_.empty() && turns_.back() >= kept) turns_.pop_back();
  n_system_ = std::min(n_system_, kept);
  return kept;
}

std::span<const int32_t> ChatSession::turn(int32_t turn) const {
  const auto i = static_cast<size_t>(turn);
  MINFER_DCHECK(i < turns_.size());
  const auto begin = static_cast<size_t>(turns_[i]);
  const size_t end = i + 1 < turns_.size() ? static_cast<size_t>(turns_[i + 1]) : ids_.size();
  return std::span(ids_).subspan(begin, end - begin);
}

Status ChatSession::save(const std::string& path) const {
  EngineImpl& engine = *engine_->impl_;
  const std::string identity = MINFER_TRY(engine.identity());
  const KvShape& kv = engine.runner().kv_shape();
  const auto page_size = static_cast<size_t>(kv.page_size);
  const std::span<const int32_t> ids(ids_);
  // How many pages the cache has now. One that is evicted while others are written is an error, not a shorter file.
  uint32_t n_pages = 0;
  const auto count = [&](Runner& runner) {
    n_pages = static_cast<uint32_t>(runner.tables().match(ids, static_cast<int32_t>(ids.size()))) /
              static_cast<uint32_t>(page_size);
  };
  if (!engine.between_steps(count)) return make_error(ErrorCode::kCancelled, "[session] the engine is closing");
  Writer w(MINFER_TRY(AtomicFile::create(path)));
  MINFER_TRY(w.put(std::as_bytes(std::span(kMagic))));
  MINFER_TRY(w.put_value(kVersion));
  MINFER_TRY(w.put_value(static_cast<uint32_t>(identity.size())));
  MINFER_TRY(w.put(std::as_bytes(std::span(identity))));
  for (size_t n : {ids_.size(), static_cast<size_t>(n_system_), turns_.size(), static_cast<size_t>(n_pages)})
    MINFER_TRY(w.put_value(static_cast<uint32_t>(n)));
  MINFER_TRY(w.put_value(static_cast<uint64_t>(kv.page_bytes())));
  MINFER_TRY(w.put(std::as_bytes(ids)));
  MINFER_TRY(w.put(std::as_bytes(std::span(turns_))));
  std::vector<std::byte> page(static_cast<size_t>(kv.page_bytes()));
  for (uint32_t p = 0; p < n_pages; ++p) {
    bool found = false;
    const auto read = [&](Runner& runner) {
      const int32_t at = runner.tables().find(ids.first((p + 1) * page_size));
      found = at >= 0;
      if (found) runner.kv().read_page(at, page);
    };
    if (!engine.between_steps(read)) return make_error(ErrorCode::kCancelled, "[session] the engine is closing");
    if (!found)
      return make_error(ErrorCode::kResourceExhausted, "[session] '{}': page {} left the cache while it was written",
                        path, p);
    MINFER_TRY(w.put(page));
  }
  return w.commit();
}

Status ChatSession::load(const std::string& path) {
  EngineImpl& engine = *engine_->impl_;
  const std::string identity = MINFER_TRY(engine.identity());
  const KvShape& kv = engine.runner().kv_shape();
  const auto page_size = static_cast<size_t>(kv.page_size);
  const MappedFile file = MINFER_TRY(MappedFile::open(path));
  const auto corrupt = [&](const char* what) {
    return make_error(ErrorCode::kCorrupt, "[session] '{}': {}", path, what);
  };
  const auto bytes = file.bytes();
  constexpr size_t kDigest = sizeof(Digest);
  if (bytes.size() < sizeof(kMagic) + kDigest || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0)
    return corrupt("it is no session");
  const Digest digest = Sha256().update(bytes.first(bytes.size() - kDigest)).finish();
  if (std::memcmp(digest.data(), bytes.last(kDigest).data(), kDigest) != 0)
    return corrupt("damaged: its checksum is wrong");
  Reader r(bytes.first(bytes.size() - kDigest));
  r.take(sizeof(kMagic));
  if (const auto version = r.value<uint32_t>(); version != kVersion)
    return make_error(ErrorCode::kUnsupported, "[session] '{}': version {}, expected {}", path, version, kVersion);
  const auto text = r.take(r.value<uint32_t>());
  const std::string_view found(reinterpret_cast<const char*>(text.data()), text.size());
  if (!r.ok()) return corrupt("it ends too early");
  if (found != identity) {
    return make_error(ErrorCode::kUnsupported, "[session] '{}' was made by\n{}expected\n{}", path, found, identity);
  }
  const auto n_ids = r.value<uint32_t>(), n_system = r.value<uint32_t>(), n_turns = r.value<uint32_t>(),
             n_pages = r.value<uint32_t>();
  const auto page_bytes = r.value<uint64_t>();
  const auto ids = r.ids(n_ids), turns = r.ids(n_turns);
  const bool sound = r.ok() && n_system <= n_ids && page_bytes == static_cast<uint64_t>(kv.page_bytes()) &&
                     uint64_t{n_pages} * page_size <= n_ids && r.left() == uint64_t{n_pages} * page_bytes &&
                     std::is_sorted(turns.begin(), turns.end()) &&
                     (turns.empty() ||
                      (turns.front() >= static_cast<int32_t>(n_system) && turns.back() <= static_cast<int64_t>(n_ids)));
  if (!sound) return corrupt("its sizes contradict each other");
  const int32_t n_vocab = engine.runner().n_vocab();
  if (!std::all_of(ids.begin(), ids.end(), [&](int32_t id) { return id >= 0 && id < n_vocab; }))
    return corrupt("it has ids that the model does not");
  for (uint32_t p = 0; p < n_pages; ++p) {
    const auto page = r.take(page_bytes);
    const auto write = [&](Runner& runner) {
      const int32_t at = runner.tables().adopt(std::span<const int32_t>(ids).first((p + 1) * page_size));
      if (at >= 0) runner.kv().write_page(at, page);
    };
    if (!engine.between_steps(write)) return make_error(ErrorCode::kCancelled, "[session] the engine is closing");
  }
  ids_ = ids;
  turns_ = turns;
  n_system_ = static_cast<int32_t>(n_system);
  return {};
}

}  // namespace minfer
