// Engine: one model, any number of requests at once. Every answer has the bits it would have alone: what else runs, how
// prompts are cut, what the prefix cache holds and which guesses were right change when it comes, never what comes.
// Errors:  values, never exceptions; a request that is refused or fails disturbs no other. The caller's functions
//          (progress, on_step, on_event, on_prompt, mask) must not throw either: an exception that leaves one on a
//          thread of the engine ends the program (std::terminate).
// Threads: all methods from any thread. The engine runs its steps on a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "minfer/error.h"
#include "minfer/request.h"

namespace minfer {

class Model;          // model/model.h
class NodeObserver;   // plan/plan.h
class Runner;         // engine/runner.h
class Tracer;         // trace/tracer.h
struct EngineImpl;    // engine/engine_impl.h
struct RequestState;  // engine/request_state.h

// What one step computed and how long it took.
struct StepInfo {
  int32_t prompt_tokens = 0;  // of prompts
  int32_t streams = 0;        // sequences whose next token was computed
  int32_t draft_tokens = 0;   // guesses computed after them
  double forward_ms = 0;      // the model alone
  double total_ms = 0;        // with the draws and the guesses of a draft model
};

struct EngineOptions {
  std::string device = "cpu", isa;  // isa empty: the best there is
  int n_threads = 0;                // 0: the cores this process may use
  int32_t ctx = 0;  // positions of one sequence at most; 0: as the model was trained, as far as memory goes
  // Bytes of K and V of all sequences and of the prefix cache, fixed from the start. 0: a quarter of the memory that is
  // free (limits of a container respected), at least one whole context, at most max_running of them.
  int64_t kv_memory = 0;
  std::string cache_type_k = "f16", cache_type_v = "f16";  // f32, f16, bf16, q8_0
  int32_t max_running = 64;                                // sequences computed together
  int32_t max_requests = 4096;                             // unfinished at once; more are refused
  int32_t chunk = 0;                                       // prompt tokens per step while nothing streams; 0: 512
  double max_stall_ms = 200;     // a stream should not wait longer for its next token because prompts are read
  int32_t stream_tokens = 1024;  // a stream that is not read holds so many tokens, then its request waits
  bool prefix_cache = true;
  // A folder that keeps pages of K and V when they leave the cache and when the engine closes, for the next one with
  // the same model and the same numerics; empty: none. Pages that are damaged or made by others are refused.
  std::string kv_store;
  int64_t kv_store_bytes = int64_t{4} << 30;  // at most; the least recently used go first
  std::string model_sha256;  // of the model's file, in hex, where the caller knows it; empty: read when it is needed
  // Tokens guessed ahead at most from what the text itself repeats; 0: none.
  int32_t speculation = 8;
  // A smaller model with the same vocabulary, which guesses ahead too where that pays; empty: none. Its context may be
  // shorter: beyond it there are no guesses.
  std::string draft_model;
  int32_t draft_tokens = 8;     // that it guesses ahead at most
  int64_t draft_kv_memory = 0;  // bytes of its K and V, f16; 0: room for as many positions as kv_memory has
  std::function<bool(int64_t done, int64_t total)> progress;  // bytes loaded; false cancels

  // For those who look inside. What is pointed to outlives the engine and is read only when nothing runs.
  Tracer* tracer = nullptr;                                         // what each operation of each step cost
  NodeObserver* observer = nullptr;                                 // sees every value; steps that it fails, fail
  std::function<void(const StepInfo&)> on_step;                     // after each step, on the engine's thread
  std::vector<std::string> disabled_passes;                         // passes over the graph that are left out
  std::vector<std::pair<std::string, std::string>> forced_kernels;  // (operation, kernel)
};

struct EngineStats {
  int32_t requests_waiting = 0, sequences_running = 0;
  int64_t requests_total = 0, requests_finished = 0, requests_refused = 0;
  int64_t tokens_prefilled = 0, tokens_cached = 0, tokens_generated = 0;
  int64_t draft_tokens = 0, draft_tokens_accepted = 0;              // guesses that were computed; those that came true
  int64_t draft_model_tokens = 0, draft_model_tokens_accepted = 0;  // of them, those of the draft model
  int64_t draft_kv_bytes = 0, draft_failures = 0;                   // its steps that failed, which no request notices
  double draft_ms = 0;                                              // the time it took, all together
  int64_t steps = 0, preemptions = 0, plans_made = 0;
  int64_t kv_bytes = 0, kv_pages = 0, kv_pages_free = 0, kv_pages_cached = 0;
  int32_t kv_page_size = 0, n_ctx = 0;
  int64_t kv_store_pages = 0, kv_store_read = 0, kv_store_written = 0, kv_store_refused = 0;  // refused: or failed
  double step_ms = 0;                                                                         // the last step
  // Time between two tokens of a stream, over the last so many thousand; the promise is max_stall_ms.
  double stall_p50_ms = 0, stall_p99_ms = 0, stall_max_ms = 0;
};

// The answer to one request as it comes. Destroying it before the end cancels the request. One that was moved from is
// done, and refuses the rest.
// Threads: next() and wait() from one thread at a time; cancel() from any.
class Stream {
 public:
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  // The next event; waits for it. nullopt: the answer is complete. Errors: what made the request fail.
  Result<std::optional<Event>> next();
  // The same without waiting: nullopt also when there is none yet (see done()).
  Result<std::optional<Event>> poll();
  bool done() const;  // all events were taken
  // Takes all events that are left and gives the whole response, once. Errors: what made the request fail.
  Result<Response> wait();
  void cancel();  // its memory is free within one step; the choices end with kCancelled

 private:
  friend class Engine;
  explicit Stream(std::shared_ptr<RequestState> state);
  std::shared_ptr<RequestState> state_;
};

// Embeddings on their way. Destroying it before the end cancels them.
// Threads: wait() from one thread at a time; the others from any.
class PendingEmbeddings {
 public:
  PendingEmbeddings(PendingEmbeddings&&) noexcept;
  PendingEmbeddings& operator=(PendingEmbeddings&&) noexcept;
  ~PendingEmbeddings();

  // Once. Errors: kCancelled, kResourceExhausted past the deadline, what else made them fail.
  Result<Embeddings> wait();
  bool done() const;  // wait() would not wait
  void cancel();      // its memory is free within one step

 private:
  friend class Engine;
  explicit PendingEmbeddings(std::shared_ptr<RequestState> state);
  std::shared_ptr<RequestState> state_;
};

class Engine {
 public:
  // Loads the weights and starts. Errors: the file, the options (each with what was found and expected), memory.
  static Result<std::unique_ptr<Engine>> open(const std::string& model_path, const EngineOptions& options);
  static Result<std::unique_ptr<Engine>> create(std::unique_ptr<Model> model, const EngineOptions& options);
  ~Engine();  // cancels what is left

  // Errors: kInvalidArgument or kOutOfRange for what makes no sense or can never fit, with the numbers;
  // kResourceExhausted when max_requests are unfinished.
  Result<Stream> submit(Request request);
  Result<Response> run(Request request);  // submit() and wait()

  // Computed beside everything else. Errors: as above.
  Result<PendingEmbeddings> submit(EmbedRequest request);
  Result<Embeddings> embed(EmbedRequest request);  // submit() and wait()

  EngineStats stats() const;
  const Model& model() const;
  int32_t n_ctx() const;

  // Waits until nothing runs or waits, then checks all bookkeeping of the cache; with `clear` the prefix cache is
  // emptied first and every page must be free. Errors: kInternal, what is wrong.
  Status check_idle(bool clear = false);

  // Runs `look` on the engine's thread, between two steps, and waits for it: for those who look inside. False: the
  // engine is closing, and it did not run.
  bool inspect(const std::function<void(Runner&)>& look);

 private:
  friend class ChatSession;
  explicit Engine(std::unique_ptr<EngineImpl> impl);
  std::unique_ptr<EngineImpl> impl_;
};

}  // namespace minfer
