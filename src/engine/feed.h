// Feeding ids to a sequence of a runner without an engine, step by step: for measuring and for tests.
// Errors:  kOutOfRange when the context cannot hold them (nothing is fed); those of Runner::step().
// Threads: one thread at a time, like the runner.
#pragma once

#include <functional>
#include <span>

#include "engine/runner.h"

namespace minfer {

// Appends `ids` to the sequence, in chunks. The logits after the last of them [n_vocab], valid until the next step.
Result<std::span<const float>> feed(Runner& runner, int32_t seq, std::span<const int32_t> ids);
// The same, with the logits of every id handed to `each(index, logits)` (perplexity, teacher forcing).
Status feed_all(Runner& runner, int32_t seq, std::span<const int32_t> ids,
                const std::function<Status(size_t, std::span<const float>)>& each);

}  // namespace minfer
