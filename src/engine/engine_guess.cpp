// Guessing ahead for every stream: which source is asked, how deep, and what it says.
#include <algorithm>

#include "engine/engine_impl.h"
#include "trace/tracer.h"

namespace minfer {
namespace {

// Of max_stall_ms, what guessing may take.
constexpr double kDraftShare = 0.3;
// The draft model reads a text that it does not know only when that takes less than this share of what the tokens left
// to draw would take alone.
constexpr double kReadShare = 0.5;
// A run is counted among those that share the draft model's steps when its guesses come true more often than this.
constexpr double kLikely = 0.3;

}  // namespace

// What the draft model would be asked for this run; `tokens`, `rows` and `ms`: of the step so far, this run's own token
// included; `sharers`: runs whose guesses are computed together.
GuessDepth::Choice EngineImpl::draft_choice(Run& run, const GuessCosts& c, int32_t room, int32_t& most) const {
  most = 0;
  if (!draft_ || !draft_->usable(run.drafted)) return {};
  const StepTime& time = scheduler_.time();
  const int32_t depth = std::min({options_.draft_tokens, room, draft_->room(run.known)});
  const int32_t missing = draft_->missing(run.drafted, run.ids);
  if (depth <= 0 || draft_->read_ms(missing, run.known) > kReadShare * room * time.decode_ms(1)) return {};
  most = depth;
  const double per_guess = draft_->step_ms(c.sharers) / c.sharers;
  return run.draft_depth.best(most, c.tokens,
                              [&](int32_t k) { return time.decode_ms(c.rows + k) + c.draft_ms + k * per_guess; });
}

void EngineImpl::choose_guesses(Run& run, GuessCosts& c) {
  const Request& r = run.owner.request;
  int32_t room = runner_->n_ctx() - run.known;
  if (r.max_tokens >= 0) room = std::min(room, r.max_tokens - run.answer.size() - 1);
  if (room <= 0) return;
  const StepTime& time = scheduler_.time();
  if (options_.speculation > 0) run.lookup.guess(run.ids, std::min(options_.speculation, room), run.looked_up);
  const auto by_lookup = run.lookup_depth.best(static_cast<int32_t>(run.looked_up.size()), c.tokens,
                                               [&](int32_t k) { return time.decode_ms(c.rows + k) + c.draft_ms; });
  int32_t most = 0;
  auto by_model = draft_choice(run, c, room, most);
  run.by_model = by_model.depth > 0 && by_model.rate > by_lookup.rate;
  if (!run.by_model && by_lookup.depth == 0 && most > 0 && run.draft_depth.probe()) {
    run.by_model = true;
    by_model = {.depth = 1};
  }
  run.draft = by_lookup.depth;  // by the model: where it does not answer
  const auto& chosen = run.by_model ? by_model : by_lookup;
  c.rows += chosen.depth;
  c.tokens += chosen.expected;
  if (!run.by_model) return;
  c.draft_ms += chosen.depth * draft_->step_ms(c.sharers) / c.sharers;
  run.before_guesses = run.sampler.state();
  asks_.push_back(
      {&run.drafted, &run.ids, chosen.depth, [this, &run](std::span<const float> logits) -> Result<int32_t> {
         const int32_t id = MINFER_TRY(draw_one(run, logits, /*guess=*/true));
         return run.answer.ends(id) ? -1 : id;
       }});
  asking_.push_back(&run);
}

void EngineImpl::guess_ahead() {
  guess_ms_ = 0;
  asks_.clear();
  asking_.clear();
  GuessCosts costs;
  for (SchedRun* sched : scheduler_.running()) {
    Run& run = static_cast<Run&>(*sched);
    run.draft = 0;
    run.by_model = false;
    run.guess.clear();
    run.looked_up.clear();
    if (!run.is_stream() || run.paused) continue;
    ++costs.rows;
    costs.sharers += run.owner.request.speculate && run.draft_depth.hit() >= kLikely ? 1 : 0;
  }
  if (costs.rows == 0 || (options_.speculation == 0 && !draft_)) return;
  costs.tokens = costs.rows;
  costs.sharers = std::max(costs.sharers, 1);
  for (SchedRun* sched : scheduler_.running()) {
    Run& run = static_cast<Run&>(*sched);
    if (run.is_stream() && !run.paused && run.owner.request.speculate) choose_guesses(run, costs);
  }
  if (!asks_.empty()) {
    const int64_t t0 = now_ns();
    draft_->propose(asks_, kDraftShare * options_.max_stall_ms);
    guess_ms_ = static_cast<double>(now_ns() - t0) * 1e-6;
    counts_.draft_ms += guess_ms_;
  }
  for (Run* run : asking_) {
    run->sampler.restore(run->before_guesses);
    run->by_model = !run->drafted.guesses.empty();
    if (!run->by_model) continue;
    run->guess = run->drafted.guesses;
    run->draft = static_cast<int32_t>(run->guess.size());
  }
  for (SchedRun* sched : scheduler_.running()) {
    Run& run = static_cast<Run&>(*sched);
    if (!run.by_model && run.draft > 0) run.guess = run.looked_up;
  }
}

// What the step drew after `draft` guesses says of both sources.
void EngineImpl::learn_of_guesses(Run& run, int32_t draft) {
  const std::vector<int32_t>& drawn = run.drawn;
  if (drawn.empty()) return;
  // What the text itself proposed costs nothing to judge, whether it was computed or not.
  int32_t same = 0;
  const auto n = static_cast<int32_t>(std::min(drawn.size(), run.looked_up.size()));
  while (same < n && drawn[static_cast<size_t>(same)] == run.looked_up[static_cast<size_t>(same)]) ++same;
  run.lookup_depth.learn(std::min(n, same + 1), same);
  if (draft == 0) return;
  const auto accepted = static_cast<int32_t>(drawn.size()) - 1;
  Response& response = run.owner.response;
  response.draft_tokens += draft, counts_.draft_tokens += draft;
  response.draft_tokens_accepted += accepted, counts_.draft_tokens_accepted += accepted;
  if (!run.by_model) return;
  run.draft_depth.learn(draft, accepted);
  counts_.draft_model_tokens += draft, counts_.draft_model_tokens_accepted += accepted;
}

}  // namespace minfer
