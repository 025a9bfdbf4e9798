// Session: one sequence of a runner with the ids that are in its cache. Append-only use prefills only what is new.
// Threads: one thread at a time, like its runner.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/runner.h"

namespace minfer {

class Session {
 public:
  static Result<Session> open(Runner& runner);
  Session(Session&& o) noexcept;
  Session& operator=(Session&&) = delete;
  ~Session();

  const std::vector<int32_t>& ids() const { return ids_; }  // whose K and V are cached
  int32_t room() const { return runner_->n_ctx() - static_cast<int32_t>(ids_.size()); }

  // Forgets everything after the first n ids.
  void truncate(size_t n);
  // Cuts the cache to its longest common prefix with `ids` (all but the last id, whose logits are wanted) and returns
  // how many ids stay.
  size_t match(std::span<const int32_t> ids);

  // Appends ids in chunks and returns the logits after the last one [n_vocab], valid until the next step.
  // `progress(done, total)` is called after each chunk; false cancels: what was fed stays cached.
  // Errors: kOutOfRange when the context cannot hold them (nothing is fed).
  Result<std::span<const float>> feed(std::span<const int32_t> ids,
                                      const std::function<bool(size_t, size_t)>& progress = {});
  // The same, with the logits of every id handed to `each(index, logits)` (perplexity, teacher forcing).
  Status feed_all(std::span<const int32_t> ids, const std::function<Status(size_t, std::span<const float>)>& each);

  Runner& runner() { return *runner_; }

 private:
  Session(Runner& runner, int32_t seq) : runner_(&runner), seq_(seq) {}
  Status check_room(size_t n) const;
  Result<std::span<const float>> feed_chunk(std::span<const int32_t> ids, bool all, bool last);

  Runner* runner_;
  int32_t seq_;
  std::vector<int32_t> ids_;
};

}  // namespace minfer
