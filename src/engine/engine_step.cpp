// One step: the batch, its rows of logits, the draws, what they mean for each answer.
#include <algorithm>

#include "engine/engine_impl.h"
#include "engine/logprobs.h"
#include "trace/tracer.h"

namespace minfer {

// Of the items that draw, or of those that embed; first_row_ of the others stays.
void EngineImpl::build_batch(const SchedStep& step, bool embeds) {
  batch_.clear();
  first_row_.resize(step.items.size());
  size_t rows = 0;
  for (size_t k = 0; k < step.items.size(); ++k) {
    const SchedItem& item = step.items[k];
    const Run& run = static_cast<const Run&>(*item.run);
    if (run.pooled.has_value() != embeds) continue;
    first_row_[k] = rows;
    const bool all_rows = run.max_part != INT32_MAX && run.answer.size() == 0;
    for (int32_t i = 0; i < item.n; ++i) {
      const int32_t p = run.stored + i;
      const int32_t id =
          p < run.known ? run.ids[static_cast<size_t>(p)] : run.guess[static_cast<size_t>(p - run.known)];
      const bool want = embeds ? run.pooled->wants(p, run.known) : p >= run.known - 1 || all_rows;
      rows += want ? 1 : 0;
      batch_.push_back({id, p, run.seq, want});
    }
  }
}

// `rows` [item.n, n_vocab]: the logits of all tokens of the item.
void EngineImpl::read_prompt_logprobs(Run& run, const SchedItem& item, const float* rows) {
  const auto n_vocab = static_cast<size_t>(runner_->n_vocab());
  auto& out = run.owner.response.prompt_logprobs;
  for (int32_t i = 0; i < item.n; ++i) {
    const auto next = static_cast<size_t>(run.stored + i + 1);
    // A run that was pushed out computes what it has read again.
    if (next >= run.n_prompt || next - 1 < out.size()) continue;
    const std::span<const float> row(rows + static_cast<size_t>(i) * n_vocab, n_vocab);
    if (const auto sound = argmax(row); !sound.ok()) {
      run.failed = sound.error();
      return;
    }
    out.push_back(logprobs_of(row, run.ids[next], run.owner.request.top_logprobs));
  }
}

// Which ids the run may draw next; empty: all. For a guess the request's mask is not asked: it may remember its calls.
Result<TokenMask> EngineImpl::mask_of(Run& run, bool guess) {
  const Request& r = run.owner.request;
  const auto generated = std::span<const int32_t>(run.ids).subspan(run.n_prompt);
  const bool go_on = static_cast<int64_t>(generated.size()) < r.min_tokens;
  const bool masked = r.mask && !guess;
  if (!masked && !go_on) return TokenMask();
  const auto n_vocab = static_cast<size_t>(runner_->n_vocab());
  run.allowed.assign(mask_words(n_vocab), 0xffffffffu);
  if (masked) {
    MINFER_TRY(r.mask(run.choice, generated, run.allowed));
    if (!allows_any(run.allowed, n_vocab)) {
      return make_error(ErrorCode::kInvalidArgument, "[engine] choice {}, token {}: the mask allows no token at all",
                        run.choice, generated.size());
    }
  }
  if (go_on) {
    for (const int32_t id : run.owner.end_ids) run.allowed[static_cast<size_t>(id) / 32] &= ~(1u << (id % 32));
    if (!allows_any(run.allowed, n_vocab)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "[engine] choice {}, token {}: the mask allows only what ends the answer, and min_tokens is {}",
                        run.choice, generated.size(), r.min_tokens);
    }
  }
  return TokenMask(run.allowed);
}

// A guess is drawn as the token itself will be.
Result<int32_t> EngineImpl::draw_one(Run& run, std::span<const float> logits, bool guess) {
  const TokenMask mask = MINFER_TRY(mask_of(run, guess));
  return run.sampler.sample(logits, run.ids, run.ids.size(), mask);
}

// Draws after the last known id, and on as long as what is drawn is what was guessed: the rows after a guess are those
// of plain decoding exactly then. `rows` [draft + 1, n_vocab].
void EngineImpl::draw(Run& run, int32_t draft, const float* rows) {
  const auto n_vocab = static_cast<size_t>(runner_->n_vocab());
  const Request& r = run.owner.request;
  run.drawn.clear();
  run.drawn_logprobs.clear();
  run.drawn_scores.clear();
  for (int32_t k = 0; k <= draft; ++k) {
    const std::span<const float> row(rows + static_cast<size_t>(k) * n_vocab, n_vocab);
    auto id = draw_one(run, row, /*guess=*/false);
    if (!id.ok()) {
      // After a guess a stop string may have ended the answer before this row; otherwise the next step begins with it.
      if (k == 0) run.failed = std::move(id).error();
      return;
    }
    if (r.logprobs) {
      run.drawn_logprobs.push_back(r.logprobs_of == LogprobsOf::kModel
                                       ? logprobs_of(row, *id, r.top_logprobs)
                                       : sampled_logprobs(run.sampler, *id, r.top_logprobs));
    }
    if (run.owner.ranks()) run.drawn_scores.push_back(logprob_of(row, *id));
    run.drawn.push_back(*id);
    run.ids.push_back(*id);
    if (k < draft && run.guess[static_cast<size_t>(k)] != *id) return;
    if (run.answer.ends(*id)) return;  // nothing follows an end, and no mask is asked what might
  }
}

void EngineImpl::draw_all(const SchedStep& step, std::span<const float> logits) {
  const auto n_vocab = static_cast<size_t>(runner_->n_vocab());
  const auto n = static_cast<int64_t>(step.items.size());
  const auto one = [&](int64_t i) {
    const SchedItem& item = step.items[static_cast<size_t>(i)];
    Run& run = static_cast<Run&>(*item.run);
    run.drawn.clear();
    if (run.pooled) return;
    const float* rows = logits.data() + first_row_[static_cast<size_t>(i)] * n_vocab;
    if (run.max_part != INT32_MAX && run.answer.size() == 0) {
      read_prompt_logprobs(run, item, rows);
      rows += static_cast<size_t>(item.n - 1 - item.draft) * n_vocab;  // the first to draw from
    }
    if (item.draws() && run.owner.request.max_tokens != 0 && run.failed.ok()) draw(run, item.draft, rows);
  };
  if (n == 1 || runner_->pool().size() == 1) {
    for (int64_t i = 0; i < n; ++i) one(i);
    return;
  }
  std::atomic<int64_t> next{0};
  const Status s = runner_->pool().run([&](Worker&) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) one(i);
  });
  MINFER_CHECK(s.ok());  // nothing in it calls fail()
}

void EngineImpl::emit(Run& run) {
  if (run.pooled || run.owner.ranks()) return;
  Event event = run.answer.take_event();
  if (event.ids.empty() && event.text.empty() && !event.finish) return;
  event.choice = run.choice;
  if (!run.owner.deliver(std::move(event))) run.owner.cancelled.store(true, std::memory_order_relaxed);
}

// What the step drew becomes part of the answer, up to what ends it.
void EngineImpl::accept(Run& run, const SchedItem& item) {
  RequestState& state = run.owner;
  KvTables& tables = runner_->tables();
  const int32_t before = run.known, n_drawn = static_cast<int32_t>(run.drawn.size());
  const bool reads_prompt = run.stored < static_cast<int32_t>(run.n_prompt) && run.answer.size() == 0;
  const bool draws = item.draws();
  // Rows of guesses that were wrong are forgotten.
  const int32_t valid = std::min(run.stored + item.n, before + std::max(0, n_drawn - 1));
  if (valid < run.stored + item.n) tables.truncate(run.seq, valid);
  run.stored = valid;
  if (options_.prefix_cache) tables.remember(run.seq, run.ids);
  learn_of_guesses(run, item.draft);
  if (reads_prompt && state.request.on_prompt && run.choice == 0 &&
      !state.request.on_prompt(std::min<int64_t>(run.stored, static_cast<int64_t>(run.n_prompt)),
                               static_cast<int64_t>(run.n_prompt)))
    state.cancelled.store(true, std::memory_order_relaxed);
  if (!draws) return;
  if (run.pooled) {
    state.embeddings.rows[static_cast<size_t>(run.choice)] = run.pooled->take();
    run.answer.end(FinishReason::kLength);
    return;
  }
  const double now = now_ms();
  if (n_drawn > 0) {
    if (run.answer.size() == 0 && state.response.timings.first_token_ms == 0)
      state.response.timings.first_token_ms = now - state.submitted_ms;
    if (run.last_token_ms >= 0) {
      const auto stall = static_cast<float>(now - run.last_token_ms);
      stall_max_ = std::max(stall_max_, stall);
      if (stalls_.size() < kStalls)
        stalls_.push_back(stall);
      else
        stalls_[stall_at_++ % kStalls] = stall;
    }
    run.last_token_ms = now;
  }
  for (int32_t k = 0; k < n_drawn && !run.answer.finish(); ++k) {
    const auto i = static_cast<size_t>(k);
    const Status accepted = run.answer.accept(run.drawn[i], state.request.logprobs ? &run.drawn_logprobs[i] : nullptr);
    if (!accepted.ok()) {
      run.failed = accepted;
      return;
    }
    if (state.ranks()) run.score_sum += static_cast<double>(run.drawn_scores[i]), ++run.n_scored;
    ++counts_.tokens_generated;
    // The next step would need a position for the last id.
    const auto known = static_cast<int32_t>(run.n_prompt) + run.answer.size();
    if (!run.answer.finish() && known > runner_->n_ctx()) run.answer.end(FinishReason::kContext);
  }
  if (state.request.max_tokens == 0 && !run.answer.finish()) run.answer.end(FinishReason::kLength);
  run.known = static_cast<int32_t>(run.ids.size());
}

// A row that a run had before it was pushed out is not added again.
void EngineImpl::pool_rows(const SchedStep& step, const float* rows) {
  const auto width = static_cast<size_t>(runner_->n_embd());
  for (size_t k = 0; k < step.items.size(); ++k) {
    Run& run = static_cast<Run&>(*step.items[k].run);
    if (!run.pooled) continue;
    const float* row = rows + first_row_[k] * width;
    for (int32_t p = run.stored, n = 0; p < run.stored + step.items[k].n; ++p) {
      if (!run.pooled->wants(p, run.known)) continue;
      const bool is_new = !run.pooled->wants(0, run.known) || p >= run.pooled->added();
      if (is_new) run.pooled->add({row + static_cast<size_t>(n) * width, width});
      ++n;
    }
  }
}

Status EngineImpl::compute(const SchedStep& step) {
  forward_ms_ = 0;
  const auto forward = [&](bool hidden) {
    const int64_t t0 = now_ns();
    auto rows = hidden ? runner_->step_hidden(batch_) : runner_->step(batch_);
    forward_ms_ += static_cast<double>(now_ns() - t0) * 1e-6;
    return rows;
  };
  build_batch(step, /*embeds=*/false);
  if (!batch_.empty()) draw_all(step, MINFER_TRY(forward(false)));
  build_batch(step, /*embeds=*/true);
  if (!batch_.empty()) pool_rows(step, MINFER_TRY(forward(true)).data());
  return {};
}

void EngineImpl::report_step(const SchedStep& step, double ms) const {
  StepInfo info;
  info.prompt_tokens = step.shape.prefill_tokens;
  for (const SchedItem& item : step.items) {
    info.streams += item.run->is_stream() ? 1 : 0;
    info.draft_tokens += item.draft;
  }
  info.forward_ms = forward_ms_;
  info.total_ms = ms;
  options_.on_step(info);
}

void EngineImpl::run_step(const SchedStep& step) {
  const int64_t t0 = now_ns();
  const Status computed = compute(step);
  if (!computed.ok()) {  // nothing of it can be told apart: all of its requests fail
    std::vector<RequestState*> states;
    for (const SchedItem& item : step.items) states.push_back(&static_cast<Run&>(*item.run).owner);
    for (RequestState* s : states) fail(*s, computed.error());
    return;
  }
  const double ms = static_cast<double>(now_ns() - t0) * 1e-6;
  scheduler_.observe(ms);
  if (options_.on_step) report_step(step, guess_ms_ + ms);
  ++counts_.steps;
  counts_.step_ms = guess_ms_ + ms;
  counts_.tokens_prefilled += step.shape.prefill_tokens;
  for (const SchedItem& item : step.items) {
    Run& run = static_cast<Run&>(*item.run);
    if (run.failed.ok()) accept(run, item);
  }
  for (const SchedItem& item : step.items) {
    Run& run = static_cast<Run&>(*item.run);
    if (live_.find(&run.owner) == live_.end()) continue;  // failed by another choice of this step
    if (!run.failed.ok()) {
      fail(run.owner, run.failed.error());
    } else if (run.answer.finish()) {
      scheduler_.remove(run);
      finish(run, *run.answer.finish());
    } else if (!run.drawn.empty()) {
      emit(run);
    }
  }
  publish_stats();
}

}  // namespace minfer
