// Feeding a sequence chunk by chunk.
#include "engine/session.h"

#include <algorithm>

namespace minfer {

Result<Session> Session::open(Runner& runner) { return Session(runner, MINFER_TRY(runner.open_sequence())); }

Session::Session(Session&& o) noexcept : runner_(o.runner_), seq_(o.seq_), ids_(std::move(o.ids_)) { o.seq_ = -1; }

Session::~Session() {
  if (seq_ >= 0) runner_->close_sequence(seq_);
}

void Session::truncate(size_t n) {
  if (n >= ids_.size()) return;
  ids_.resize(n);
  runner_->truncate(seq_, static_cast<int32_t>(n));
}

size_t Session::match(std::span<const int32_t> ids) {
  const size_t limit = ids.empty() ? 0 : ids.size() - 1;
  size_t n = 0;
  while (n < limit && n < ids_.size() && ids_[n] == ids[n]) ++n;
  truncate(n);
  return n;
}

Status Session::check_room(size_t n) const {
  if (n <= static_cast<size_t>(room())) return {};
  return make_error(ErrorCode::kOutOfRange,
                    "[engine] {} tokens do not fit: {} of the context's {} positions are in use", n, ids_.size(),
                    runner_->n_ctx());
}

Result<std::span<const float>> Session::feed_chunk(std::span<const int32_t> ids, bool all, bool last) {
  std::vector<BatchToken> batch;
  batch.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    batch.push_back({ids[i], static_cast<int32_t>(ids_.size() + i), seq_, all || (last && i + 1 == ids.size())});
  }
  auto logits = MINFER_TRY(runner_->step(batch));
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  return logits;
}

Result<std::span<const float>> Session::feed(std::span<const int32_t> ids,
                                             const std::function<bool(size_t, size_t)>& progress) {
  if (ids.empty()) return make_error(ErrorCode::kInvalidArgument, "[engine] no tokens to feed");
  MINFER_TRY(check_room(ids.size()));
  const auto chunk = static_cast<size_t>(runner_->chunk());
  for (size_t at = 0;;) {
    const size_t n = std::min(chunk, ids.size() - at);
    auto logits = MINFER_TRY(feed_chunk(ids.subspan(at, n), false, at + n == ids.size()));
    at += n;
    if (progress && !progress(at, ids.size()))
      return make_error(ErrorCode::kCancelled, "[engine] cancelled after {} of {} prompt tokens", at, ids.size());
    if (at == ids.size()) return logits;
  }
}

Status Session::feed_all(std::span<const int32_t> ids,
                         const std::function<Status(size_t, std::span<const float>)>& each) {
  MINFER_TRY(check_room(ids.size()));
  // Logits of every row: a chunk is kept small enough that they take at most 64 MiB.
  const auto vocab = static_cast<size_t>(runner_->n_vocab());
  const size_t chunk =
      std::clamp<size_t>((size_t{64} << 20) / (vocab * sizeof(float)), 1, static_cast<size_t>(runner_->chunk()));
  for (size_t at = 0; at < ids.size(); at += chunk) {
    const size_t n = std::min(chunk, ids.size() - at);
    const auto logits = MINFER_TRY(feed_chunk(ids.subspan(at, n), true, true));
    for (size_t i = 0; i < n; ++i) MINFER_TRY(each(at + i, logits.subspan(i * vocab, vocab)));
  }
  return {};
}

}  // namespace minfer
