// The public face of the engine and its loop.
#include "minfer/engine.h"

#include <algorithm>

#include "base/memory_info.h"
#include "engine/engine_impl.h"
#include "engine/engine_store.h"
#include "trace/tracer.h"

namespace minfer {

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kContext: return "context";
    case FinishReason::kCancelled: return "cancelled";
    case FinishReason::kDeadline: return "deadline";
  }
  return "unknown";
}

// --- the loop -------------------------------------------------------------------------------------------------------
EngineImpl::EngineImpl(std::unique_ptr<Model> model, std::unique_ptr<Runner> runner, std::unique_ptr<DraftModel> draft,
                       std::optional<PageStore> store, const EngineOptions& options)
    : model_(std::move(model)),
      runner_(std::move(runner)),
      draft_(std::move(draft)),
      store_(std::move(store)),
      options_(options),
      start_ns_(now_ns()),
      scheduler_({options.max_running, runner_->chunk(), runner_->max_batch(), options.max_stall_ms}) {
  stalls_.reserve(kStalls);
  if (store_) {
    page_.resize(static_cast<size_t>(runner_->kv_shape().page_bytes()));
    runner_->tables().tree().on_evict = [this](RadixTree::Node node) { keep(node); };
  }
  publish_stats();
  thread_ = std::thread([this] { loop(); });
}

EngineImpl::~EngineImpl() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  doorbell_->ring();
  thread_.join();
}

double EngineImpl::now_ms() const { return static_cast<double>(now_ns() - start_ns_) * 1e-6; }

bool EngineImpl::take_inbox() {
  std::vector<StatePtr> fresh;
  std::vector<Task> tasks;
  bool closing;
  {
    const std::lock_guard lock(mutex_);
    fresh.swap(inbox_);
    tasks.swap(tasks_);
    std::move(idle_inbox_.begin(), idle_inbox_.end(), std::back_inserter(idle_questions_));
    idle_inbox_.clear();
    closing = closing_;
  }
  for (const StatePtr& s : fresh) start(s);
  for (Task& t : tasks) {
    (*t.run)(*runner_);
    t.done.set_value(true);
  }
  if (closing) {
    for (const auto& [raw, s] : live_) s->cancelled.store(true, std::memory_order_relaxed);
  }
  return !closing;
}

void EngineImpl::take_cancels() {
  std::vector<StatePtr> cancelled;  // finishing them changes live_
  for (const auto& [raw, s] : live_) {
    if (raw->cancelled.load(std::memory_order_relaxed)) cancelled.push_back(s);
  }
  for (const StatePtr& s : cancelled) {
    for (auto& run : s->runs) {
      if (run->account == nullptr) continue;  // ended before
      scheduler_.remove(*run);
      finish(*run, FinishReason::kCancelled);
    }
  }
}

// A stream that nobody reads holds so many tokens and no more.
void EngineImpl::update_pauses() {
  for (const auto& [raw, s] : live_) {
    const bool full = !s->request.on_event && s->tokens_held() >= s->tokens_most;
    for (auto& run : s->runs) {
      if (full && !run->paused) run->last_token_ms = -1;  // its waiting is not the engine's doing
      run->paused = full;
    }
  }
}

double EngineImpl::wait_ms() const {
  double until = -1;
  for (const auto* list : {&scheduler_.running(), &scheduler_.waiting()}) {
    for (const SchedRun* run : *list) {
      if (run->deadline_ms > 0 && (until < 0 || run->deadline_ms < until)) until = run->deadline_ms;
    }
  }
  return until < 0 ? -1 : std::max(0.0, until - now_ms());
}

void EngineImpl::answer_idle() {
  MINFER_DCHECK(runner_->tables().check_integrity().ok());
  KvTables& tables = runner_->tables();
  std::vector<Status> answers;
  for (const IdleQuestion& q : idle_questions_) {
    if (q.clear) tables.forget_prefixes();
    Status s = tables.check_integrity();
    if (s.ok() && tables.seqs_open() != 0)
      s = make_error(ErrorCode::kInternal, "[engine] idle, and {} sequences are open", tables.seqs_open());
    if (s.ok() && tables.pages_available() != tables.pages_total())
      s = make_error(ErrorCode::kInternal, "[engine] idle, and only {} of {} pages are available",
                     tables.pages_available(), tables.pages_total());
    if (s.ok() && draft_) s = draft_->check_idle(q.clear);
    answers.push_back(std::move(s));
  }
  publish_stats();
  for (size_t i = 0; i < answers.size(); ++i) idle_questions_[i].answer.set_value(std::move(answers[i]));
  idle_questions_.clear();
}

void EngineImpl::loop() noexcept {
  prefer_short_slices();
  for (;;) {
    ended_.clear();
    const bool open = take_inbox();
    take_cancels();
    if (scheduler_.empty()) {
      answer_idle();
      if (!open) return keep_all();
      doorbell_->wait(-1);
      continue;
    }
    update_pauses();
    guess_ahead();
    const SchedStep& step = scheduler_.next(*this, now_ms(), guess_ms_);
    counts_.preemptions += static_cast<int64_t>(step.preempted.size());
    for (SchedRun* run : step.preempted) ++static_cast<Run*>(run)->owner.response.preemptions;
    for (SchedRun* run : step.expired) {
      Run& expired = static_cast<Run&>(*run);
      expired.stored = 0;
      finish(expired, FinishReason::kDeadline);
    }
    if (step.items.empty()) {
      if (step.expired.empty()) doorbell_->wait(wait_ms());  // all streams are full: reading one rings
      continue;
    }
    run_step(step);
  }
}

std::future<Status> EngineImpl::ask_idle(bool clear) {
  std::future<Status> answer;
  {
    const std::lock_guard lock(mutex_);
    idle_inbox_.push_back({clear, {}});
    answer = idle_inbox_.back().answer.get_future();
  }
  doorbell_->ring();
  return answer;
}

bool EngineImpl::between_steps(const std::function<void(Runner&)>& task) {
  std::future<bool> done;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return false;
    tasks_.push_back({&task, {}});
    done = tasks_.back().done.get_future();
  }
  doorbell_->ring();
  return done.get();
}

void EngineImpl::publish_stats() {
  const KvTables& tables = runner_->tables();
  const std::lock_guard lock(mutex_);
  published_ = counts_;
  published_.requests_waiting = scheduler_.n_waiting();
  published_.sequences_running = scheduler_.n_running();
  published_.plans_made = runner_->plans_made();
  published_.kv_bytes = runner_->kv_shape().bytes();
  published_.kv_pages = tables.pages_total();
  published_.kv_pages_free = tables.pages_free();
  published_.kv_pages_cached = tables.pages_cached();
  published_.kv_store_pages = store_ ? store_->n_pages() : 0;
  published_.kv_page_size = tables.page_size();
  published_.n_ctx = runner_->n_ctx();
  if (draft_) {
    published_.draft_kv_bytes = draft_->runner().kv_shape().bytes();
    published_.draft_failures = draft_->failures();
  }
  published_.stall_max_ms = stall_max_;
  published_stalls_ = stalls_;
}

EngineStats EngineImpl::stats() const {
  std::vector<float> stalls;
  EngineStats out;
  {
    const std::lock_guard lock(mutex_);
    out = published_;
    out.requests_refused = n_refused_;
    stalls = published_stalls_;
  }
  if (stalls.empty()) return out;
  const auto quantile = [&](double q) {
    const auto at = static_cast<size_t>(q * static_cast<double>(stalls.size() - 1));
    std::nth_element(stalls.begin(), stalls.begin() + static_cast<std::ptrdiff_t>(at), stalls.end());
    return static_cast<double>(stalls[at]);
  };
  out.stall_p50_ms = quantile(0.5);
  out.stall_p99_ms = quantile(0.99);
  return out;
}

// --- Stream, PendingEmbeddings ---------------------------------------------------------------------------------------
namespace {

void cancel_request(RequestState* state) {
  if (state == nullptr || state->cancelled.exchange(true, std::memory_order_relaxed)) return;
  state->doorbell->ring();
}

Error moved_away() {
  return make_error(ErrorCode::kInvalidArgument, "[engine] this request was moved to another object");
}

Status take_all_events(RequestState* state) {
  if (state == nullptr) return moved_away();
  while (MINFER_TRY(state->take(true))) {
  }
  return {};
}

}  // namespace

Stream::Stream(std::shared_ptr<RequestState> state) : state_(std::move(state)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream::~Stream() { cancel(); }

Stream& Stream::operator=(Stream&& o) noexcept {
  if (this != &o) {
    cancel();
    state_ = std::move(o.state_);
  }
  return *this;
}

void Stream::cancel() { cancel_request(state_.get()); }
bool Stream::done() const { return !state_ || state_->all_taken(); }

Result<std::optional<Event>> Stream::next() {
  if (!state_) return moved_away();
  return state_->take(true);
}

Result<std::optional<Event>> Stream::poll() {
  if (!state_) return moved_away();
  return state_->take(false);
}

Result<Response> Stream::wait() {
  MINFER_TRY(take_all_events(state_.get()));
  return state_->take_response();
}

PendingEmbeddings::PendingEmbeddings(std::shared_ptr<RequestState> state) : state_(std::move(state)) {}
PendingEmbeddings::PendingEmbeddings(PendingEmbeddings&&) noexcept = default;
PendingEmbeddings::~PendingEmbeddings() { cancel(); }

PendingEmbeddings& PendingEmbeddings::operator=(PendingEmbeddings&& o) noexcept {
  if (this != &o) {
    cancel();
    state_ = std::move(o.state_);
  }
  return *this;
}

void PendingEmbeddings::cancel() { cancel_request(state_.get()); }
bool PendingEmbeddings::done() const { return !state_ || state_->all_taken(); }

Result<Embeddings> PendingEmbeddings::wait() {
  MINFER_TRY(take_all_events(state_.get()));
  return state_->take_embeddings();
}

// --- Engine ---------------------------------------------------------------------------------------------------------
namespace {

Result<DType> cache_type(const std::string& name) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    if (name == dtype_info(t).name) return t;
  }
  return make_error(ErrorCode::kInvalidArgument, "[engine] cache type '{}': expected f32, f16, bf16 or q8_0", name);
}

Result<RunnerOptions> runner_options(const Model& model, const EngineOptions& o) {
  RunnerOptions r;
  r.backend.device = o.device;
  r.backend.isa = o.isa;
  r.n_threads = o.n_threads;
  r.n_ctx = o.ctx;
  r.n_seqs = o.max_running;
  r.type_k = MINFER_TRY(cache_type(o.cache_type_k));
  r.type_v = MINFER_TRY(cache_type(o.cache_type_v));
  r.chunk = o.chunk;
  r.plan.disabled_passes = o.disabled_passes;
  r.plan.forced_kernels = o.forced_kernels;
  if (o.progress) r.progress = [p = o.progress](int64_t done, int64_t total) noexcept { return p(done, total); };
  r.kv_memory = o.kv_memory;
  if (o.kv_memory == 0) {
    const int64_t per_token = kv_bytes_per_token(model.hparams(), r.type_k, r.type_v);
    const int64_t n_ctx = o.ctx > 0 ? o.ctx : 512;  // one context at least; without a wish, 512 positions
    constexpr int64_t kPage = 32;                   // positions that a page has at most
    r.kv_memory = std::max(memory_available_bytes() / 4, per_token * (n_ctx + kPage));
  }
  return r;
}

// Shares the threads of `runner`, which never compute at the same time.
Result<std::unique_ptr<DraftModel>> open_draft(const Model& model, Runner& runner, const EngineOptions& o) {
  DraftOptions d;
  d.runner.backend.device = o.device;
  d.runner.backend.isa = o.isa;
  d.runner.pool = runner.shared_pool();
  d.runner.n_ctx = runner.n_ctx();
  d.runner.n_seqs = o.max_running;
  d.runner.chunk = o.chunk;
  d.kv_memory = o.draft_kv_memory;
  d.positions = runner.kv_shape().n_slots();
  d.share_prefixes = o.prefix_cache;
  return DraftModel::create(MINFER_TRY(Model::open(o.draft_model)), model, d);
}

Status check_options(const EngineOptions& o) {
  const auto refuse = [](const char* field, auto found, auto lo, auto hi) {
    return make_error(ErrorCode::kInvalidArgument, "[engine] {}: found {}, expected {} to {}", field, found, lo, hi);
  };
  if (o.max_running < 1 || o.max_running > 4096) return refuse("max_running", o.max_running, 1, 4096);
  if (o.max_requests < 1) return refuse("max_requests", o.max_requests, 1, INT32_MAX);
  if (!(o.max_stall_ms >= 1 && o.max_stall_ms <= 1e6)) return refuse("max_stall_ms", o.max_stall_ms, 1.0, 1e6);
  if (o.stream_tokens < 1) return refuse("stream_tokens", o.stream_tokens, 1, INT32_MAX);
  if (o.speculation < 0 || o.speculation > 64) return refuse("speculation", o.speculation, 0, 64);
  if (o.draft_tokens < 1 || o.draft_tokens > 64) return refuse("draft_tokens", o.draft_tokens, 1, 64);
  if (o.draft_kv_memory < 0) return refuse("draft_kv_memory", o.draft_kv_memory, int64_t{0}, INT64_MAX);
  if (o.kv_store_bytes < 0) return refuse("kv_store_bytes", o.kv_store_bytes, int64_t{0}, INT64_MAX);
  if (o.chunk < 0 || o.chunk > 4096) return refuse("chunk", o.chunk, 0, 4096);
  const bool is_digest =
      o.model_sha256.size() == 64 && o.model_sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!o.model_sha256.empty() && !is_digest)
    return make_error(ErrorCode::kInvalidArgument, "[engine] model_sha256: found '{}', expected 64 hexadecimal digits",
                      o.model_sha256.substr(0, 80));
  if (o.kv_memory < 0) return refuse("kv_memory", o.kv_memory, int64_t{0}, INT64_MAX);
  return {};
}

}  // namespace

Engine::Engine(std::unique_ptr<EngineImpl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(const std::string& path, const EngineOptions& options) {
  return create(MINFER_TRY(Model::open(path)), options);
}

Result<std::unique_ptr<Engine>> Engine::create(std::unique_ptr<Model> model, const EngineOptions& options) {
  MINFER_TRY(check_options(options));
  auto runner = MINFER_TRY(Runner::create(*model, MINFER_TRY(runner_options(*model, options))));
  runner->hooks = {options.tracer, options.observer};
  std::unique_ptr<DraftModel> draft;
  if (!options.draft_model.empty())
    draft = MINFER_TRY_CTX(open_draft(*model, *runner, options), "draft model '" + options.draft_model + "'");
  std::optional<PageStore> store;
  if (!options.kv_store.empty()) store = MINFER_TRY(open_page_store(*model, *runner, options));
  return std::unique_ptr<Engine>(new Engine(
      std::make_unique<EngineImpl>(std::move(model), std::move(runner), std::move(draft), std::move(store), options)));
}

Result<Stream> Engine::submit(Request request) { return Stream(MINFER_TRY(impl_->submit(std::move(request)))); }
Result<Response> Engine::run(Request request) { return MINFER_TRY(submit(std::move(request))).wait(); }
Result<PendingEmbeddings> Engine::submit(EmbedRequest request) {
  return PendingEmbeddings(MINFER_TRY(impl_->submit(std::move(request))));
}
Result<Embeddings> Engine::embed(EmbedRequest request) { return MINFER_TRY(submit(std::move(request))).wait(); }

EngineStats Engine::stats() const { return impl_->stats(); }
const Model& Engine::model() const { return impl_->model(); }
int32_t Engine::n_ctx() const { return impl_->runner().n_ctx(); }
Status Engine::check_idle(bool clear) {
  if (impl_->on_its_thread()) return waits_for_itself();
  return impl_->ask_idle(clear).get();
}
bool Engine::inspect(const std::function<void(Runner&)>& look) {
  return !impl_->on_its_thread() && impl_->between_steps(look);
}

}  // namespace minfer
