// The life of a request: what is refused, how its runs get and give back memory, how it ends.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/engine_impl.h"
#include "trace/tracer.h"

namespace minfer {
namespace {

constexpr int32_t kMaxChoices = 128;       // as OpenAI takes
constexpr int32_t kMaxTopLogprobs = 1000;  // 8 KB per token
constexpr size_t kMaxEmbedInputs = 4096;   // of one request for embeddings
constexpr size_t kMaxStopIds = 4096;       // looked through at every token
// Logits of a step for prompt logprobs: 64 MiB at most.
constexpr int64_t kPromptRowBytes = int64_t{64} << 20;

uint64_t client_id(const std::string& name) { return std::hash<std::string>()(name); }

}  // namespace

Status EngineImpl::check_ids(const char* field, std::span<const int32_t> ids) const {
  const int32_t n_vocab = runner_->n_vocab();
  for (int32_t id : ids) {
    if (id < 0 || id >= n_vocab)
      return make_error(ErrorCode::kOutOfRange, "[engine] {}: token id {}, expected 0 to {}", field, id, n_vocab - 1);
  }
  return {};
}

Status EngineImpl::check(const Request& r) const {
  const auto refuse = [](const char* field, int64_t found, int64_t lo, int64_t hi) {
    return make_error(ErrorCode::kInvalidArgument, "[engine] {}: found {}, expected {} to {}", field, found, lo, hi);
  };
  MINFER_TRY(check_sampling(r.sampling));
  const int32_t n_vocab = runner_->n_vocab(), n_ctx = runner_->n_ctx();
  if (r.prompt.empty()) return make_error(ErrorCode::kInvalidArgument, "[engine] the prompt is empty");
  MINFER_TRY(check_ids("prompt", r.prompt));
  MINFER_TRY(check_ids("stop_ids", r.stop_ids));
  for (const auto& [id, bias] : r.sampling.logit_bias) MINFER_TRY(check_ids("logit_bias", {&id, 1}));
  if (r.n < 1 || r.n > kMaxChoices) return refuse("n", r.n, 1, kMaxChoices);
  if (r.best_of != 0 && (r.best_of < r.n || r.best_of > kMaxChoices))
    return make_error(ErrorCode::kInvalidArgument, "[engine] best_of: found {}, expected n ({}) to {}, or 0", r.best_of,
                      r.n, kMaxChoices);
  if (r.max_tokens < -1) return refuse("max_tokens", r.max_tokens, -1, n_ctx);
  if (r.min_tokens < 0 || (r.max_tokens >= 0 && r.min_tokens > r.max_tokens))
    return refuse("min_tokens", r.min_tokens, 0, r.max_tokens >= 0 ? r.max_tokens : n_ctx);
  if (r.logprobs_of != LogprobsOf::kModel && r.logprobs_of != LogprobsOf::kSampled)
    return refuse("logprobs_of", static_cast<int64_t>(r.logprobs_of), 0, 1);
  const int32_t most_top = std::min(kMaxTopLogprobs, n_vocab);
  if (r.top_logprobs < 0 || r.top_logprobs > most_top) return refuse("top_logprobs", r.top_logprobs, 0, most_top);
  if (r.stop_ids.size() > kMaxStopIds)
    return refuse("the number of stop_ids", static_cast<int64_t>(r.stop_ids.size()), 0, kMaxStopIds);
  if (!(r.deadline_ms >= 0) || std::isinf(r.deadline_ms))
    return make_error(ErrorCode::kInvalidArgument, "[engine] deadline_ms: found {}, expected 0 or more", r.deadline_ms);
  if (!r.stop.empty() && model_->tokenizer() == nullptr)
    return make_error(ErrorCode::kUnsupported, "[engine] stop strings: this model has no vocabulary, so no text");
  // The last token drawn is never computed, so it needs no position.
  const auto n_prompt = static_cast<int64_t>(r.prompt.size());
  const int64_t n_new = std::max<int64_t>({r.max_tokens, r.min_tokens, 1}) - 1;
  if (n_prompt + n_new > n_ctx) {
    return make_error(ErrorCode::kOutOfRange,
                      "[engine] a prompt of {} tokens and {} to draw need {} positions, the context has {}", n_prompt,
                      n_new + 1, n_prompt + n_new, n_ctx);
  }
  return {};
}

Result<EngineImpl::StatePtr> EngineImpl::make_state(Request request) {
  const Tokenizer* tokenizer = model_->tokenizer();
  if (request.text) {
    if (!request.prompt.empty())
      return make_error(ErrorCode::kInvalidArgument,
                        "[engine] a prompt is given as ids and as text, expected one of both");
    if (tokenizer == nullptr)
      return make_error(ErrorCode::kUnsupported, "[engine] this model has no vocabulary: expected a prompt of ids");
    request.prompt = MINFER_TRY(tokenizer->encode(*request.text, {true, request.parse_special}));
    request.text.reset();
  }
  if (request.top_logprobs > 0) request.logprobs = true;
  MINFER_TRY(check(request));
  const auto stops = MINFER_TRY(chat::StopMatcher::create(request.stop));
  auto state = std::make_shared<RequestState>(std::move(request));
  const Request& r = state->request;
  state->doorbell = doorbell_;
  state->tokens_most = options_.stream_tokens;
  state->submitted_ms = now_ms();
  state->response.prompt_tokens = static_cast<int64_t>(r.prompt.size());
  const int32_t n_runs = std::max(r.n, r.best_of);
  for (int32_t c = 0; c < n_runs; ++c) {
    SamplingParams sampling = r.sampling;
    sampling.seed += static_cast<uint64_t>(c);
    auto run = std::make_unique<Run>(*state, c, Answer(tokenizer, r, stops), Sampler(std::move(sampling)));
    run->ids = r.prompt;
    run->n_prompt = r.prompt.size();
    run->known = static_cast<int32_t>(r.prompt.size());
    run->priority = r.priority;
    run->client = client_id(r.client);
    if (r.deadline_ms > 0) run->deadline_ms = state->submitted_ms + r.deadline_ms;
    if (r.prompt_logprobs && c == 0) {
      const int64_t rows = kPromptRowBytes / (int64_t{runner_->n_vocab()} * static_cast<int64_t>(sizeof(float)));
      run->max_part = static_cast<int32_t>(std::clamp<int64_t>(rows, 1, 512));
    }
    state->runs.push_back(std::move(run));
  }
  for (int32_t id = 0; r.min_tokens > 0 && id < runner_->n_vocab(); ++id) {
    if (state->runs[0]->answer.ends(id)) state->end_ids.push_back(id);
  }
  state->n_live = n_runs;
  state->response.choices.resize(static_cast<size_t>(n_runs));
  return state;
}

Result<EngineImpl::StatePtr> EngineImpl::make_state(EmbedRequest e) {
  const Tokenizer* tokenizer = model_->tokenizer();
  if (e.prompts.empty() == e.texts.empty())
    return make_error(ErrorCode::kInvalidArgument,
                      "[engine] embeddings: expected prompts of ids or texts, one of both");
  if (e.pooling > Pooling::kNone)
    return make_error(ErrorCode::kInvalidArgument, "[engine] pooling: found {}, expected 0 to {}",
                      static_cast<int>(e.pooling), static_cast<int>(Pooling::kNone));
  if (!e.texts.empty() && tokenizer == nullptr)
    return make_error(ErrorCode::kUnsupported, "[engine] this model has no vocabulary: expected prompts of ids");
  for (const std::string& text : e.texts) e.prompts.push_back(MINFER_TRY(tokenizer->encode(text, {true, false})));
  if (e.prompts.size() > kMaxEmbedInputs)
    return make_error(ErrorCode::kInvalidArgument, "[engine] embeddings: {} inputs, expected 1 to {}", e.prompts.size(),
                      kMaxEmbedInputs);
  for (size_t i = 0; i < e.prompts.size(); ++i) {
    Request as_prompt;  // the same limits
    as_prompt.prompt = e.prompts[i];
    as_prompt.deadline_ms = e.deadline_ms;
    MINFER_TRY_CTX(check(as_prompt), "embedding " + std::to_string(i));
  }
  Request r;
  r.priority = e.priority, r.client = e.client, r.deadline_ms = e.deadline_ms;
  r.max_tokens = 0;
  auto state = std::make_shared<RequestState>(std::move(r));
  state->doorbell = doorbell_;
  state->tokens_most = options_.stream_tokens;
  state->submitted_ms = now_ms();
  state->embeddings.n_embd = runner_->n_embd();
  state->on_done = std::move(e.on_done);
  for (auto& prompt : e.prompts) {
    auto run = std::make_unique<Run>(*state, static_cast<int32_t>(state->runs.size()),
                                     Answer(nullptr, state->request, {}), Sampler({}));
    run->pooled.emplace(e.pooling, e.normalize, runner_->n_embd());
    run->n_prompt = prompt.size();
    run->ids = std::move(prompt);
    run->known = static_cast<int32_t>(run->n_prompt);
    run->priority = e.priority;
    run->client = client_id(e.client);
    if (e.deadline_ms > 0) run->deadline_ms = state->submitted_ms + e.deadline_ms;
    state->embeddings.prompt_tokens += run->known;
    state->runs.push_back(std::move(run));
  }
  state->n_live = static_cast<int32_t>(state->runs.size());
  state->embeddings.rows.resize(state->runs.size());
  return state;
}

Result<EngineImpl::StatePtr> EngineImpl::submit(Request request) { return enqueue(make_state(std::move(request))); }
Result<EngineImpl::StatePtr> EngineImpl::submit(EmbedRequest request) {
  return enqueue(make_state(std::move(request)));
}

Result<EngineImpl::StatePtr> EngineImpl::enqueue(Result<StatePtr> made) {
  {
    const std::lock_guard lock(mutex_);
    if (made.ok() && n_unfinished_ >= options_.max_requests) {
      made = make_error(ErrorCode::kResourceExhausted, "[engine] {} requests are unfinished, no more are taken",
                        n_unfinished_);
    }
    if (!made.ok()) {
      ++n_refused_;
      return made;
    }
    ++n_unfinished_;
    (*made)->engine_thread = thread_.get_id();
    inbox_.push_back(*made);
  }
  doorbell_->ring();
  return made;
}

void EngineImpl::start(const StatePtr& state) {
  live_.emplace(state.get(), state);
  ++counts_.requests_total;
  for (auto& run : state->runs) {
    run->arrival = ++arrivals_;
    scheduler_.add(*run);
  }
}

void EngineImpl::close_sequence(Run& run) {
  if (draft_) draft_->release(run.drafted);
  if (run.seq < 0) return;
  runner_->close_sequence(run.seq);
  run.seq = -1;
  run.stored = 0;
}

// Leaves the best of all answers, and tells of them.
void EngineImpl::rank(RequestState& state) {
  const auto mean = [&](size_t i) {
    const Run& run = *state.runs[i];
    return run.n_scored > 0 ? run.score_sum / run.n_scored : -INFINITY;  // nothing was drawn: last
  };
  std::vector<size_t> order(state.runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return mean(a) > mean(b); });
  std::vector<Choice> best;
  for (int32_t i = 0; i < state.request.n; ++i) {
    best.push_back(std::move(state.response.choices[order[static_cast<size_t>(i)]]));
    const Choice& c = best.back();
    state.deliver({i, c.ids, c.text, c.logprobs, c.finish});  // there is nothing left to cancel
  }
  state.response.choices = std::move(best);
}

// What goes on where this one ended, the next turn of a conversation, computes nothing of it again.
// Requires: no step that computed rows of it is unaccounted for.
void EngineImpl::keep_and_close(Run& run) {
  if (run.seq >= 0 && options_.prefix_cache) runner_->tables().remember_tail(run.seq, run.ids);
  close_sequence(run);
}

void EngineImpl::retire(Run& run) {
  keep_and_close(run);
  RequestState& state = run.owner;
  if (!run.pooled) {
    Choice& choice = state.response.choices[static_cast<size_t>(run.choice)];
    choice = run.answer.take_choice();
    state.response.generated_tokens += static_cast<int64_t>(choice.ids.size());
  }
  // The request may be held long after this: its runs keep nothing that grows with the vocabulary or the answer.
  run.ids = {};
  run.allowed = {};
  run.lookup = {};
  run.sampler = Sampler(SamplingParams());
  if (--state.n_live > 0) return;
  if (state.ranks()) rank(state);
  state.response.timings.total_ms = now_ms() - state.submitted_ms;
  state.embeddings.timings = state.response.timings;
  ++counts_.requests_finished;
  {
    const std::lock_guard lock(mutex_);
    --n_unfinished_;
  }
  const auto it = live_.find(&state);
  ended_.push_back(it->second);
  live_.erase(it);
  publish_stats();  // who waited for the answer finds it counted
  state.complete(std::nullopt);
}

// Requires: the scheduler does not hold the run any more.
void EngineImpl::finish(Run& run, FinishReason reason) {
  if (run.pooled && reason == FinishReason::kCancelled) {
    fail(run.owner, make_error(ErrorCode::kCancelled, "[engine] the embeddings were cancelled"));
    return;
  }
  if (run.pooled && reason == FinishReason::kDeadline) {
    fail(run.owner, make_error(ErrorCode::kResourceExhausted, "[engine] the embeddings were not done in {} ms",
                               run.owner.request.deadline_ms));
    return;
  }
  if (!run.answer.finish()) run.answer.end(reason);
  emit(run);
  retire(run);
}

void EngineImpl::fail(RequestState& state, Error error) {
  const auto it = live_.find(&state);
  if (it == live_.end()) return;
  ended_.push_back(it->second);
  for (auto& run : state.runs) {
    if (run->account != nullptr) scheduler_.remove(*run);
    close_sequence(*run);
  }
  live_.erase(it);
  ++counts_.requests_finished;
  {
    const std::lock_guard lock(mutex_);
    --n_unfinished_;
  }
  publish_stats();
  state.complete(std::move(error));
}

// Where every row is wanted, all of them are computed.
bool EngineImpl::may_share(const Run& run) const {
  return options_.prefix_cache && run.max_part == INT32_MAX && !(run.pooled && run.pooled->wants(0, run.known));
}

// --- memory, as the scheduler asks for it ---------------------------------------------------------------------------
bool EngineImpl::admit(SchedRun& sched) {
  Run& run = static_cast<Run&>(sched);
  KvTables& tables = runner_->tables();
  const bool shares = may_share(run);
  if (shares) {
    // Another run is computing pages that this one begins with as well: they are waited for.
    const int32_t have = tables.match(run.ids, run.known - 1);
    for (const SchedRun* r : scheduler_.running()) {
      const Run& other = static_cast<const Run&>(*r);
      if (other.is_stream() || other.paused) continue;
      const auto limit = static_cast<size_t>(std::min(run.known, other.known) - 1);
      size_t n = 0;
      while (n < limit && run.ids[n] == other.ids[n]) ++n;
      if (static_cast<int32_t>(n) >= have + tables.page_size()) return false;
    }
  }
  const auto seq = runner_->open_sequence();
  MINFER_CHECK(seq.ok());  // there are as many as runs at once
  run.seq = *seq;
  run.stored = shares ? tables.attach(run.seq, run.ids, run.known - 1) : 0;
  if (shares && store_) restore(run);
  if (shares) run.stored = tables.attach_tail(run.seq, run.ids, run.known - 1);
  RequestState& state = run.owner;
  if (run.pooled && run.pooled->added() == 0) state.embeddings.cached_tokens += run.stored;
  if (!state.started) {
    state.started = true;
    state.response.cached_tokens = run.stored;
    state.response.timings.queued_ms = now_ms() - state.submitted_ms;
    counts_.tokens_cached += run.stored;
  }
  return true;
}

void EngineImpl::catch_up(SchedRun& sched) {
  Run& run = static_cast<Run&>(sched);
  KvTables& tables = runner_->tables();
  if (!may_share(run) || run.stored % tables.page_size() != 0) return;
  run.stored = tables.attach(run.seq, run.ids, run.known - 1);
}

bool EngineImpl::reserve(SchedRun& run, int32_t n) { return runner_->reserve(static_cast<Run&>(run).seq, n).ok(); }

void EngineImpl::release(SchedRun& sched) {
  Run& run = static_cast<Run&>(sched);
  keep_and_close(run);
  run.looked_up.clear();
}

}  // namespace minfer
