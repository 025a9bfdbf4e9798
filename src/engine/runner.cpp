// Creating a runner and running steps.
#include "engine/runner.h"

#include <algorithm>
#include <cstring>

#include "base/memory_info.h"

namespace minfer {
namespace {

constexpr int32_t kPageSize = 32;
constexpr int32_t kMaxCtx = 1 << 30;  // positions; rounding up to pages and tiles stays inside int32
constexpr int32_t kTile = 256;        // positions per attention tile: n_kv is a multiple of it

int32_t round_up(int32_t n, int32_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

Runner::~Runner() = default;

Result<std::unique_ptr<Runner>> Runner::create(const Model& model, const RunnerOptions& options) {
  const HParams& hp = model.hparams();
  std::unique_ptr<Runner> r(new Runner);
  r->model_ = &model;
  r->backend_ = MINFER_TRY(make_backend(options.backend));
  const int n_threads = options.pool             ? options.pool->size()
                        : options.n_threads == 0 ? usable_cores()
                                                 : options.n_threads;
  r->pool_ = options.pool;
  if (!r->pool_) r->pool_ = MINFER_TRY(ThreadPool::create(n_threads));
  r->plan_options_ = options.plan;
  r->plan_options_.n_threads = n_threads;
  r->fused_attention_ = !r->backend_->kernels(Op::kAttention).empty();
  r->chunk_ = options.chunk > 0 ? options.chunk : (r->fused_attention_ ? 512 : 32);
  if (r->chunk_ > r->max_batch()) {
    return make_error(ErrorCode::kInvalidArgument, "[engine] chunk of {} tokens: expected 1 to {}", r->chunk_,
                      r->max_batch());
  }
  if (options.n_ctx < 0 || options.n_ctx > std::min(hp.n_ctx_train, kMaxCtx)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "[engine] context of {} positions: expected 1 to {}, which the model was trained for",
                      options.n_ctx, std::min(hp.n_ctx_train, kMaxCtx));
  }
  if (options.n_seqs < 1 || options.n_seqs > (1 << 20)) {
    return make_error(ErrorCode::kInvalidArgument, "[engine] {} sequences at once: expected 1 to {}", options.n_seqs,
                      1 << 20);
  }

  MINFER_TRY(r->place_cache(options));
  r->weights_ = MINFER_TRY(load_weights(model.weights(), model.source(), *r->backend_, *r->pool_, options.progress));
  r->externals_.weights = r->weights_.views;
  r->externals_.kv = r->kv_->views();
  r->arena_ = std::make_shared<Arena>();
  return r;
}

// The cache's memory is fixed here, once and for all.
Status Runner::place_cache(const RunnerOptions& options) {
  const HParams& hp = model_->hparams();
  KvShape kv;
  kv.n_layer = hp.n_layer;
  kv.n_head_kv = hp.n_head_kv;
  kv.head_dim = hp.head_dim;
  kv.page_size = kPageSize;
  kv.type_k = options.type_k;
  kv.type_v = options.type_v;
  // Of no pages: refuses types that cannot hold the heads before their bytes are counted.
  MINFER_TRY(KvCache::create(kv));
  const int64_t per_token = kv_bytes_per_token(hp, kv.type_k, kv.type_v);
  const int64_t per_page = per_token * kPageSize, memory = memory_available_bytes();
  if (options.kv_memory != 0 && options.kv_memory < per_page) {
    return make_error(ErrorCode::kInvalidArgument,
                      "[engine] kv_memory of {} bytes: expected at least {}, a page of {} positions of this model",
                      options.kv_memory, per_page, kPageSize);
  }
  int64_t n_ctx = options.n_ctx, pages = options.kv_memory / per_page;
  if (n_ctx == 0) {  // a quarter of what is free for the cache, unless the model's whole context is smaller
    const int64_t fits =
        pages > 0 ? pages * kPageSize : std::max<int64_t>(memory / 4 / (per_token * options.n_seqs), 512);
    n_ctx = std::min<int64_t>({hp.n_ctx_train, fits, kMaxCtx});
  }
  n_ctx_ = static_cast<int32_t>(n_ctx);
  const int64_t whole = int64_t{round_up(n_ctx_, kPageSize) / kPageSize} * options.n_seqs;
  pages = pages > 0 ? std::min(pages, whole) : whole;  // more could never be in use
  if (pages > (int64_t{1} << 26)) {                    // slots stay inside int32
    return make_error(ErrorCode::kInvalidArgument, "[engine] {} sequences of {} positions are out of range",
                      options.n_seqs, n_ctx);
  }
  if (pages * kPageSize < n_ctx) {
    return make_error(
        ErrorCode::kInvalidArgument,
        "[engine] kv_memory of {} bytes holds {} positions ({} bytes per position), expected at least the "
        "{} of one sequence's context",
        options.kv_memory, pages * kPageSize, per_token, n_ctx);
  }
  kv.n_pages = static_cast<int32_t>(pages);
  if (kv.bytes() > memory) {
    return make_error(
        ErrorCode::kResourceExhausted,
        "[engine] a cache of {} positions needs {} MiB ({} bytes per position), {} MiB are free; use a smaller --ctx",
        kv.n_slots(), kv.bytes() >> 20, per_token, memory >> 20);
  }
  kv_.emplace(MINFER_TRY(KvCache::create(kv)));
  KvTablesOptions tables;
  tables.n_pages = kv.n_pages, tables.page_size = kPageSize, tables.n_seqs = options.n_seqs;
  tables.copy_page = [this](int32_t from, int32_t to) { kv_->copy_page(from, to); };
  tables_.emplace(std::move(tables));
  row_of_.assign(static_cast<size_t>(options.n_seqs), -1);
  return {};
}

Status Runner::reserve(int32_t seq, int32_t n) {
  if (n > n_ctx_) {
    return make_error(ErrorCode::kOutOfRange, "[engine] position {} is past the context of {} positions", n - 1,
                      n_ctx_);
  }
  return tables_->reserve(seq, n);
}

Result<Plan*> Runner::plan_for(int32_t n_tokens, int32_t n_seq, int32_t n_outputs, int32_t max_position, bool hidden) {
  GraphParams p;
  p.n_tokens = n_tokens;
  p.n_seq = n_seq;
  p.n_outputs = n_outputs;
  p.hidden = hidden && n_outputs > 0;
  p.page_size = kPageSize;
  p.pages_per_seq = round_up(n_ctx_, kPageSize) / kPageSize;
  p.type_k = kv_->shape().type_k;
  p.type_v = kv_->shape().type_v;
  // Only the decomposed attention sizes a buffer by n_kv; without a fused kernel it grows by doubling, so that few
  // plans serve a whole conversation.
  p.n_kv = round_up(n_ctx_, kTile);
  if (!fused_attention_) {
    int32_t n = kTile;
    while (n < max_position + 1 && n < p.n_kv) n *= 2;
    p.n_kv = std::min(n, p.n_kv);
  }
  for (auto it = plans_.begin(); it != plans_.end(); ++it) {
    if (!(it->params == p)) continue;
    plans_.splice(plans_.begin(), plans_, it);
    return plans_.front().plan.get();
  }
  Graph graph = MINFER_TRY(model_->build(p, weights_.views, kv_->shape().n_slots()));
  auto plan = MINFER_TRY(Plan::make(std::move(graph), *backend_, externals_, arena_, plan_options_));
  ++plans_made_;
  if (plans_.size() >= kMaxPlans) plans_.pop_back();
  plans_.push_front({p, std::move(plan)});
  return plans_.front().plan.get();
}

// Checks a batch and moves the sequences it touches forward, pages included.
Status Runner::advance(std::span<const BatchToken> batch) {
  const int32_t n_vocab = this->n_vocab();
  for (const BatchToken& t : batch) {
    if (!tables_->is_open(t.seq))
      return make_error(ErrorCode::kInvalidArgument, "[engine] sequence {} is not open", t.seq);
    if (t.id < 0 || t.id >= n_vocab)
      return make_error(ErrorCode::kOutOfRange, "[engine] token id {}: expected 0 to {}", t.id, n_vocab - 1);
    int32_t& row = row_of_[static_cast<size_t>(t.seq)];
    if (row < 0) {
      row = static_cast<int32_t>(batch_seqs_.size());
      batch_seqs_.push_back(t.seq);
      batch_lengths_.push_back(length(t.seq));
    }
    if (t.position != length(t.seq)) {
      return make_error(ErrorCode::kOutOfRange, "[engine] position {} of sequence {}: expected {}, the next one",
                        t.position, t.seq, length(t.seq));
    }
    MINFER_TRY(reserve(t.seq, t.position + 1));
    tables_->set_length(t.seq, t.position + 1);
  }
  return {};
}

Result<std::span<const float>> Runner::step(std::span<const BatchToken> batch, bool hidden) {
  if (batch.empty() || batch.size() > static_cast<size_t>(max_batch())) {
    return make_error(ErrorCode::kInvalidArgument, "[engine] a step of {} tokens: expected 1 to {}", batch.size(),
                      max_batch());
  }
  batch_seqs_.clear();
  batch_lengths_.clear();
  const Status advanced = advance(batch);
  Result<std::span<const float>> logits =
      advanced.ok() ? run_batch(batch, hidden) : Result<std::span<const float>>(advanced.error());
  for (size_t i = 0; i < batch_seqs_.size(); ++i) {
    row_of_[static_cast<size_t>(batch_seqs_[i])] = -1;
    if (!logits.ok()) truncate(batch_seqs_[i], batch_lengths_[i]);
  }
  return logits;
}

Result<std::span<const float>> Runner::run_batch(std::span<const BatchToken> batch, bool hidden) {
  int32_t n_outputs = 0, max_position = 0;
  for (const BatchToken& t : batch) {
    n_outputs += t.want_logits ? 1 : 0;
    max_position = std::max(max_position, t.position);
  }
  Plan* plan = MINFER_TRY(plan_for(static_cast<int32_t>(batch.size()), static_cast<int32_t>(batch_seqs_.size()),
                                   n_outputs, max_position, hidden));

  const auto tokens = plan->input(InputKind::kTokens), positions = plan->input(InputKind::kPositions),
             slots = plan->input(InputKind::kSlots), seqs = plan->input(InputKind::kSeqs),
             blocks = plan->input(InputKind::kBlockTable), out_rows = plan->input(InputKind::kOutRows),
             out_positions = plan->input(InputKind::kOutPositions), out_seqs = plan->input(InputKind::kOutSeqs);
  size_t out = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const BatchToken& t = batch[i];
    const int32_t row = row_of_[static_cast<size_t>(t.seq)];
    const auto pages = tables_->pages(t.seq);
    tokens[i] = t.id;
    positions[i] = t.position;
    slots[i] = pages[static_cast<size_t>(t.position / kPageSize)] * kPageSize + t.position % kPageSize;
    if (!seqs.empty()) seqs[i] = row;
    if (!t.want_logits) continue;
    if (!out_rows.empty()) {
      out_rows[out] = static_cast<int32_t>(i);
      out_positions[out] = t.position;
      out_seqs[out] = row;
    }
    ++out;
  }
  if (!blocks.empty()) {
    const size_t width = blocks.size() / batch_seqs_.size();
    for (size_t s = 0; s < batch_seqs_.size(); ++s) {
      const auto pages = tables_->pages(batch_seqs_[s]);
      std::fill_n(std::copy(pages.begin(), pages.end(), blocks.begin() + static_cast<std::ptrdiff_t>(s * width)),
                  width - pages.size(), -1);
    }
  }
  MINFER_TRY(plan->run(*pool_, hooks));
  if (n_outputs == 0) return std::span<const float>();
  const TensorView logits = plan->output(0);
  return std::span<const float>(logits.as<float>(), static_cast<size_t>(logits.shape.count()));
}

}  // namespace minfer
