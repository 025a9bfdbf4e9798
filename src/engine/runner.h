// Runner: a model on a backend: weights packed, KV cache, sequences with their block tables, plans cached by their
// parameters. It runs one step at a time: any mix of tokens of any sequences.
// Threads: one thread at a time.
// Errors:  a failed step leaves the sequences as long as they were, without pages beyond that; rows it may have written
//          are beyond every position that counts.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "kv/kv_tables.h"
#include "model/model.h"
#include "plan/plan.h"

namespace minfer {

struct RunnerOptions {
  BackendOptions backend;
  int n_threads = 0;                 // 0: usable_cores()
  std::shared_ptr<ThreadPool> pool;  // shared with others that run in turn; null: one of its own, of n_threads
  int32_t n_ctx = 0;   // positions per sequence; 0: what the model was trained for, as far as memory allows
  int32_t n_seqs = 1;  // sequences that may be open at once
  // Bytes of K and V of all sequences together; 0: each of the n_seqs has room for n_ctx positions, or, where that is
  // not asked for (n_ctx 0), as much of it as a quarter of the free memory holds.
  int64_t kv_memory = 0;
  DType type_k = DType::kF16, type_v = DType::kF16;
  int32_t chunk = 0;                                          // tokens per prefill step; 0: 512 (32 on ref)
  PlanOptions plan;                                           // n_threads is set by the runner
  std::function<bool(int64_t done, int64_t total)> progress;  // bytes of weights packed; false cancels
};

struct BatchToken {
  int32_t id;
  int32_t position;
  int32_t seq;  // from open_sequence()
  bool want_logits;
};

class Runner {
 public:
  static Result<std::unique_ptr<Runner>> create(const Model& model, const RunnerOptions& options);
  ~Runner();

  // --- sequences; sharing them is the business of tables() ---------------------------------------------------------
  Result<int32_t> open_sequence() { return tables_->open(); }  // errors: all n_seqs are open
  void close_sequence(int32_t seq) { tables_->close(seq); }
  Status reserve(int32_t seq, int32_t n);  // pages for positions 0..n-1; errors: n > n_ctx, pages
  void truncate(int32_t seq, int32_t n) { tables_->truncate(seq, n); }
  int32_t length(int32_t seq) const { return tables_->length(seq); }  // positions stored
  KvTables& tables() { return *tables_; }
  KvCache& kv() { return *kv_; }

  // Runs one step over at most max_batch() tokens. A token's position must be the next of its sequence (an error
  // otherwise: it would read rows never stored); pages are reserved as needed. Returns [rows, n_vocab] logits of the
  // tokens that want them, in batch order, valid until the next step.
  Result<std::span<const float>> step(std::span<const BatchToken> batch) { return step(batch, false); }
  // The same with the model's last hidden states, normed, in the place of logits: [rows, n_embd].
  Result<std::span<const float>> step_hidden(std::span<const BatchToken> batch) { return step(batch, true); }
  int32_t max_batch() const { return 4096; }

  const Model& model() const { return *model_; }
  const Backend& backend() const { return *backend_; }
  ThreadPool& pool() { return *pool_; }
  const std::shared_ptr<ThreadPool>& shared_pool() const { return pool_; }
  const KvShape& kv_shape() const { return kv_->shape(); }
  const LoadedWeights& weights() const { return weights_; }
  int32_t n_ctx() const { return n_ctx_; }
  int32_t chunk() const { return chunk_; }
  int32_t n_embd() const { return model_->hparams().n_embd; }
  int32_t n_vocab() const { return model_->hparams().n_vocab; }
  int32_t pages_free() const { return tables_->pages_free(); }

  RunHooks hooks;  // tracer and observer of the steps that follow

  // The plan a step with these parameters would run (made if needed): for inspection and graph dumps.
  Result<Plan*> plan_for(int32_t n_tokens, int32_t n_seq, int32_t n_outputs, int32_t max_position, bool hidden = false);
  int64_t plans_made() const { return plans_made_; }

 private:
  Runner() = default;
  Status place_cache(const RunnerOptions& options);
  Status advance(std::span<const BatchToken> batch);
  Result<std::span<const float>> step(std::span<const BatchToken> batch, bool hidden);
  Result<std::span<const float>> run_batch(std::span<const BatchToken> batch, bool hidden);
  struct CachedPlan {
    GraphParams params;
    std::unique_ptr<Plan> plan;
  };
  static constexpr size_t kMaxPlans = 64;

  const Model* model_ = nullptr;
  std::shared_ptr<ThreadPool> pool_;
  std::unique_ptr<Backend> backend_;
  LoadedWeights weights_;
  std::optional<KvCache> kv_;
  std::optional<KvTables> tables_;
  Externals externals_;
  std::shared_ptr<Arena> arena_;
  PlanOptions plan_options_;
  std::list<CachedPlan> plans_;  // most recently used first
  int64_t plans_made_ = 0;
  int32_t n_ctx_ = 0, chunk_ = 0;
  bool fused_attention_ = false;
  // Of the step in hand, kept for their memory.
  std::vector<int32_t> batch_seqs_, batch_lengths_;  // distinct sequences in order of appearance, their length before
  std::vector<int32_t> row_of_;                      // [n_seqs] row of the block table, -1 = not in the batch
};

}  // namespace minfer
