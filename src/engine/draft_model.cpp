// Batches of the draft model: first what is missing of each text, then guess by guess.
#include "engine/draft_model.h"

#include <algorithm>
#include <atomic>

#include "trace/tracer.h"

namespace minfer {
namespace {

// A run that lacks no more than this is read in the step that guesses, whatever time it takes.
constexpr int32_t kNear = 8;
// Of a text that is far behind, a step reads at least so much.
constexpr int32_t kLeastPart = 8;
// Steps that a run sits out after it found no pages, and after which a run that did not ask may lose its own.
constexpr int32_t kRest = 64;

double ms_since(int64_t t0) { return static_cast<double>(now_ns() - t0) * 1e-6; }

}  // namespace

Status check_same_vocabulary(const Model& draft, const Model& target) {
  const int32_t n = target.hparams().n_vocab;
  constexpr ErrorCode kRefused = ErrorCode::kInvalidArgument;
  if (draft.hparams().n_vocab != n)
    return make_error(kRefused, "[engine] the draft model has a vocabulary of {} tokens, expected the {} of the model",
                      draft.hparams().n_vocab, n);
  const Tokenizer *a = draft.tokenizer(), *b = target.tokenizer();
  if ((a == nullptr) != (b == nullptr))
    return make_error(kRefused, "[engine] {} has a vocabulary and {} has none: their ids cannot be compared",
                      a != nullptr ? "the draft model" : "the model", a != nullptr ? "the model" : "the draft model");
  if (a == nullptr) return {};
  const auto shown = [](const Tokenizer& t, TokenId id) {
    return t.valid(id) ? fmt::format("'{}'", t.text(id)) : std::string("none");
  };
  for (TokenId id = 0; id < n; ++id) {
    const bool same = a->valid(id) == b->valid(id) && (!a->valid(id) || a->piece(id) == b->piece(id));
    if (!same)
      return make_error(kRefused,
                        "[engine] the draft model's vocabulary differs: token {} is {}, expected {}, as in the model",
                        id, shown(*a, id), shown(*b, id));
  }
  struct Special {
    const char* name;
    TokenId draft, target;
  };
  for (const Special& s :
       {Special{"bos", a->bos(), b->bos()}, Special{"eos", a->eos(), b->eos()}, Special{"eot", a->eot(), b->eot()}}) {
    if (s.draft != s.target)
      return make_error(kRefused,
                        "[engine] the draft model's vocabulary differs: {} is {} {}, expected {} {}, as in the model",
                        s.name, s.draft, shown(*a, s.draft), s.target, shown(*b, s.target));
  }
  return {};
}

Result<std::unique_ptr<DraftModel>> DraftModel::create(std::unique_ptr<Model> model, const Model& target,
                                                       const DraftOptions& options) {
  MINFER_TRY(check_same_vocabulary(*model, target));
  std::unique_ptr<DraftModel> d(new DraftModel);
  RunnerOptions o = options.runner;
  const HParams& hp = model->hparams();
  constexpr int64_t kPage = 32;  // positions of a page
  const int64_t per_token = kv_bytes_per_token(hp, o.type_k, o.type_v);
  o.kv_memory = options.kv_memory;
  if (o.kv_memory == 0) o.kv_memory = (std::max<int64_t>(options.positions, 1) + kPage - 1) / kPage * kPage * per_token;
  const int64_t holds = std::max<int64_t>(o.kv_memory / per_token / kPage * kPage, 1);
  o.n_ctx = static_cast<int32_t>(std::min<int64_t>({o.n_ctx, hp.n_ctx_train, holds}));
  d->model_ = std::move(model);
  d->runner_ = MINFER_TRY(Runner::create(*d->model_, o));
  d->share_prefixes_ = options.share_prefixes;
  d->owners_.assign(static_cast<size_t>(o.n_seqs), nullptr);
  MINFER_TRY(d->warm_up());
  return d;
}

// The first step takes many times as long as those that follow: were its time believed, nobody would ask for another.
Status DraftModel::warm_up() {
  constexpr int32_t kSteps = 6;
  double least = 0;  // of those after the first: others may use the cores just now
  const int32_t seq = MINFER_TRY(runner_->open_sequence());
  Status s;
  for (int32_t i = 0; i < kSteps && s.ok(); ++i) {
    const BatchToken token{0, 0, seq, true};
    const int64_t t0 = now_ns();
    if (const auto logits = runner_->step({&token, 1}); !logits.ok()) s = logits.error();
    const double ms = ms_since(t0);
    if (i > 0) least = i == 1 ? ms : std::min(least, ms);
    runner_->truncate(seq, 0);
  }
  runner_->close_sequence(seq);
  time_.observe({.decode_rows = 1}, least);
  return s;
}

bool DraftModel::usable(DraftRun& run) const {
  if (run.rest > 0) --run.rest;
  return !run.off && run.rest == 0;
}

int32_t DraftModel::missing(const DraftRun& run, std::span<const int32_t> ids) const {
  const auto known = static_cast<int32_t>(ids.size());
  int32_t have = 0;
  if (run.seq >= 0) {
    have = std::min(runner_->length(run.seq), run.base);
  } else if (share_prefixes_) {
    have = runner_->tables().match(ids, known - 1);
  }
  return std::max(1, known - have);
}

void DraftModel::release(DraftRun& run) {
  if (run.seq < 0) return;
  owners_[static_cast<size_t>(run.seq)] = nullptr;
  runner_->close_sequence(run.seq);
  run.seq = -1;
}

// --- sequences ------------------------------------------------------------------------------------------------------
bool DraftModel::begin(DraftAsk& ask) {
  DraftRun& run = *ask.run;
  const std::vector<int32_t>& ids = *ask.ids;
  const auto known = static_cast<int32_t>(ids.size());
  KvTables& tables = runner_->tables();
  run.asked = now_;
  if (run.seq < 0) {
    const auto seq = runner_->open_sequence();
    if (!seq.ok()) return false;
    run.seq = *seq;
    owners_[static_cast<size_t>(run.seq)] = &run;
  } else {
    // Its rows after those of known ids are of guesses, of which some came true.
    int32_t valid = std::min(run.base, known);
    for (size_t i = 0; i < run.guesses.size() && valid < known; ++i, ++valid) {
      if (run.guesses[i] != ids[static_cast<size_t>(valid)]) break;
    }
    valid = std::min(valid, known - 1);  // the last id is computed anew: its row of logits is needed
    if (valid < runner_->length(run.seq)) runner_->truncate(run.seq, valid);
    if (share_prefixes_) tables.remember(run.seq, ids);
  }
  run.base = known;
  run.guesses.clear();
  if (share_prefixes_ && runner_->length(run.seq) % tables.page_size() == 0) tables.attach(run.seq, ids, known - 1);
  return true;
}

bool DraftModel::waits(const DraftAsk& ask) const {
  if (!share_prefixes_) return false;
  const std::vector<int32_t>& ids = *ask.ids;
  const int32_t have = runner_->length(ask.run->seq);
  for (const Active& a : active_) {
    const std::vector<int32_t>& other = *a.ask->ids;
    const size_t limit = std::min(ids.size(), other.size()) - 1;
    size_t n = 0;
    while (n < limit && ids[n] == other[n]) ++n;
    if (static_cast<int32_t>(n) >= have + runner_->tables().page_size() &&
        a.known - runner_->length(a.ask->run->seq) > kNear)
      return true;
  }
  return false;
}

// Takes the pages of the run that has not asked for longest. False: all asked lately.
bool DraftModel::make_room() {
  DraftRun* oldest = nullptr;
  for (DraftRun* run : owners_) {
    if (run != nullptr && run->asked + kRest < now_ && (oldest == nullptr || run->asked < oldest->asked)) oldest = run;
  }
  if (oldest == nullptr) return false;
  release(*oldest);
  return true;
}

bool DraftModel::reserve(const Active& a, int32_t n) {
  for (;;) {
    if (runner_->reserve(a.ask->run->seq, n).ok()) return true;
    if (!make_room()) return false;
  }
}

// --- steps ----------------------------------------------------------------------------------------------------------
// The ids that each run lacks, up to the last known one whose row the first guess is drawn from.
void DraftModel::fill_first(std::span<DraftAsk> asks, double budget_ms) {
  first_ = {};
  int32_t budget = -1, left = runner_->max_batch();  // budget: ids of texts that are far behind; -1: not known yet
  int32_t near = 0;
  for (const DraftAsk& ask : asks) near += missing(*ask.run, *ask.ids) <= kNear ? 1 : 0;
  for (DraftAsk& ask : asks) {
    if (!begin(ask)) continue;
    Active a{&ask, static_cast<int32_t>(ask.ids->size()), ask.depth};
    const int32_t have = runner_->length(ask.run->seq), lacks = a.known - have;
    int32_t n = lacks;
    if (lacks > kNear) {
      if (waits(ask)) continue;
      if (budget < 0) {
        budget = time_.prefill_budget(near, have, budget_ms, kLeastPart, runner_->chunk());
        budget -= budget % kLeastPart;  // few sizes, so that plans come again
      }
      n = std::min(lacks, budget);
    }
    n = std::min(n, left);
    if (n <= 0) continue;
    a.draws = n == lacks;
    const int32_t to = have + n;
    if (!a.draws || a.depth == 1 || !reserve(a, to + a.depth - 1)) {
      a.depth = 1;
      if (!reserve(a, to)) {
        release(*ask.run);
        ask.run->rest = kRest;
        continue;
      }
    }
    left -= n;
    if (lacks > kNear) {
      budget -= n;
      first_.prefill_tokens += n;
      first_.prefill_depth += int64_t{n} * have + int64_t{n} * (n - 1) / 2;
    } else {
      first_.decode_rows += n;
    }
    for (int32_t p = have; p < to; ++p)
      batch_.push_back({(*ask.ids)[static_cast<size_t>(p)], p, ask.run->seq, a.draws && p == to - 1});
    active_.push_back(a);
  }
  for (Active& a : active_) {
    if (a.draws) drawing_.push_back(&a);
  }
}

// The last guess of each run that goes deeper.
void DraftModel::fill_next() {
  std::erase_if(drawing_, [](const Active* a) {
    const DraftRun& run = *a->ask->run;
    return !a->draws || static_cast<int32_t>(run.guesses.size()) >= a->depth;
  });
  for (const Active* a : drawing_) {
    const DraftRun& run = *a->ask->run;
    batch_.push_back({run.guesses.back(), runner_->length(run.seq), run.seq, true});
  }
}

void DraftModel::draw_all(std::span<const float> logits) {
  const auto n_vocab = static_cast<size_t>(runner_->n_vocab());
  std::atomic<int64_t> failed{0};
  const auto one = [&](size_t i) {
    Active& a = *drawing_[i];
    const auto id = a.ask->draw(logits.subspan(i * n_vocab, n_vocab));
    a.draws = id.ok() && *id >= 0;
    if (!id.ok()) {
      a.ask->run->off = true;
      failed.fetch_add(1, std::memory_order_relaxed);
    }
    if (!a.draws) return;
    a.ask->run->guesses.push_back(*id);
    a.ask->ids->push_back(*id);
  };
  const size_t n = drawing_.size();
  if (n == 1 || runner_->pool().size() == 1) {
    for (size_t i = 0; i < n; ++i) one(i);
  } else {
    std::atomic<size_t> next{0};
    const Status s = runner_->pool().run([&](Worker&) {
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) one(i);
    });
    MINFER_CHECK(s.ok());  // nothing in it calls fail()
  }
  failures_ += failed.load(std::memory_order_relaxed);
}

bool DraftModel::step(const StepShape& shape) {
  const int64_t t0 = now_ns(), plans = runner_->plans_made();
  const auto logits = runner_->step(batch_);
  if (!logits.ok()) {
    ++failures_;
    for (const Active& a : active_) a.ask->run->off = true;
    return false;
  }
  draw_all(*logits);
  if (runner_->plans_made() == plans) time_.observe(shape, ms_since(t0));
  return true;
}

void DraftModel::propose(std::span<DraftAsk> asks, double budget_ms) {
  const int64_t t0 = now_ns();
  ++now_;
  active_.clear();
  drawing_.clear();
  batch_.clear();
  fill_first(asks, budget_ms);
  bool goes_on = !batch_.empty() && step(first_);
  if (goes_on && share_prefixes_) {  // all rows are of known ids yet
    for (const Active& a : active_) runner_->tables().remember(a.ask->run->seq, *a.ask->ids);
  }
  while (goes_on) {
    batch_.clear();
    fill_next();
    const StepShape shape{.decode_rows = static_cast<int32_t>(batch_.size())};
    goes_on = !batch_.empty() && ms_since(t0) + time_.decode_ms(shape.decode_rows) <= budget_ms && step(shape);
  }
  for (const Active& a : active_) {
    a.ask->ids->resize(static_cast<size_t>(a.known));
    if (a.ask->run->off) release(*a.ask->run);
  }
}

Status DraftModel::check_idle(bool clear) {
  KvTables& tables = runner_->tables();
  if (clear) tables.forget_prefixes();
  MINFER_TRY_CTX(tables.check_integrity(), "draft model");
  if (tables.seqs_open() != 0 || tables.pages_available() != tables.pages_total())
    return make_error(ErrorCode::kInternal, "[engine] idle, and the draft model has {} sequences, {} of {} pages",
                      tables.seqs_open(), tables.pages_available(), tables.pages_total());
  return {};
}

}  // namespace minfer
