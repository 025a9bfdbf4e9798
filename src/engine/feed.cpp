#include "engine/feed.h"

#include <algorithm>
#include <vector>

namespace minfer {
namespace {

Status check_room(const Runner& runner, int32_t seq, size_t n) {
  if (n == 0) return make_error(ErrorCode::kInvalidArgument, "[engine] no tokens to feed");
  const auto used = static_cast<size_t>(runner.length(seq)), n_ctx = static_cast<size_t>(runner.n_ctx());
  if (n <= n_ctx - used) return {};
  return make_error(ErrorCode::kOutOfRange,
                    "[engine] {} tokens do not fit: {} of the context's {} positions are in use", n, used, n_ctx);
}

Result<std::span<const float>> feed_chunk(Runner& runner, int32_t seq, std::span<const int32_t> ids, bool all,
                                          bool last) {
  std::vector<BatchToken> batch;
  batch.reserve(ids.size());
  const int32_t from = runner.length(seq);
  for (size_t i = 0; i < ids.size(); ++i)
    batch.push_back({ids[i], from + static_cast<int32_t>(i), seq, all || (last && i + 1 == ids.size())});
  return runner.step(batch);
}

}  // namespace

Result<std::span<const float>> feed(Runner& runner, int32_t seq, std::span<const int32_t> ids) {
  MINFER_TRY(check_room(runner, seq, ids.size()));
  const auto chunk = static_cast<size_t>(runner.chunk());
  for (size_t at = 0;;) {
    const size_t n = std::min(chunk, ids.size() - at);
    auto logits = MINFER_TRY(feed_chunk(runner, seq, ids.subspan(at, n), false, at + n == ids.size()));
    at += n;
    if (at == ids.size()) return logits;
  }
}

Status feed_all(Runner& runner, int32_t seq, std::span<const int32_t> ids,
                const std::function<Status(size_t, std::span<const float>)>& each) {
  MINFER_TRY(check_room(runner, seq, ids.size()));
  // Logits of every row: a chunk is kept small enough that they take at most 64 MiB.
  const auto vocab = static_cast<size_t>(runner.n_vocab());
  const size_t chunk =
      std::clamp<size_t>((size_t{64} << 20) / (vocab * sizeof(float)), 1, static_cast<size_t>(runner.chunk()));
  for (size_t at = 0; at < ids.size(); at += chunk) {
    const size_t n = std::min(chunk, ids.size() - at);
    const auto logits = MINFER_TRY(feed_chunk(runner, seq, ids.subspan(at, n), true, true));
    for (size_t i = 0; i < n; ++i) MINFER_TRY(each(at + i, logits.subspan(i * vocab, vocab)));
  }
  return {};
}

}  // namespace minfer
