// What the commands share: flags, opening a model with progress, printing errors, Ctrl-C.
// Exit codes: 0 fine, 1 the run failed, 2 the arguments were wrong. Answers go to stdout, everything else to stderr.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/runner.h"
#include "minfer/sampling.h"
#include "trace/tracer.h"

namespace CLI {
class App;
}

namespace minfer::cli {

inline constexpr int kOk = 0, kFailed = 1, kBadArguments = 2;

// Prints "minfer: <message>" to stderr and returns the exit code of the error.
int report(const Error& error);

// Every command: adds its subcommand with flags, help and examples to `app`; the callback stores the exit code.
using Exit = std::shared_ptr<int>;
void add_run(CLI::App& app, Exit exit);
void add_chat(CLI::App& app, Exit exit);
void add_logits(CLI::App& app, Exit exit);
void add_tokenize(CLI::App& app, Exit exit);    // tokenize and detokenize
void add_template(CLI::App& app, Exit exit);
void add_inspect(CLI::App& app, Exit exit);
void add_bench(CLI::App& app, Exit exit);
void add_perplexity(CLI::App& app, Exit exit);
void add_quantize(CLI::App& app, Exit exit);
void add_list(CLI::App& app, Exit exit);

// --- flags ---------------------------------------------------------------------------------------------------------
// Device, threads, context, cache types, trace and dumps; the environment stands in for a flag that is not given
// (MINFER_THREADS, MINFER_CACHE_TYPE, MINFER_TRACE, MINFER_DUMP_DIR, MINFER_ISA, MINFER_DISABLE_PASS, MINFER_KERNEL).
struct EngineFlags {
  std::string device, isa, cache_type, cache_type_k, cache_type_v, trace, dump_dir, dump_graph;
  int threads = 0, ctx = 0, chunk = 0;
  bool stats = false, json = false;
  void add_to(CLI::App& app, bool with_json = true);
  Result<RunnerOptions> options() const;
};

struct SamplingFlags {
  SamplingParams params;
  std::vector<std::string> logit_bias;  // "id=value" or "id=-inf"
  std::optional<uint64_t> seed;         // absent: a fresh one, printed with --stats
  void add_to(CLI::App& app);
  Result<SamplingParams> resolve() const;
};

// --- models --------------------------------------------------------------------------------------------------------
std::string models_folder();  // MINFER_MODELS or ~/.cache/minfer/models
// A path, or the name of a cached file: its stem or a unique prefix of one, in any case. Errors list what is cached.
Result<std::string> resolve_model(const std::string& name);

// A model on a backend, with a progress bar once loading takes more than a second, and the trace and dump hooks of the
// flags in place. finish() writes the trace file and prints the op histogram.
struct Loaded {
  std::unique_ptr<Model> model;
  std::unique_ptr<Runner> runner;
  std::unique_ptr<Tracer> tracer;
  std::unique_ptr<NodeObserver> observer;
  std::string trace_path;
  Status finish();
};
Result<Loaded> load(const std::string& model, const EngineFlags& flags, int32_t n_seqs = 1);
Result<Loaded> load(std::unique_ptr<Model> model, const EngineFlags& flags, int32_t n_seqs = 1);

// --- terminal ------------------------------------------------------------------------------------------------------
// A bar on stderr, drawn only when stderr is a terminal and the work has taken more than a second.
class Progress {
 public:
  Progress(std::string label, std::string unit);
  ~Progress();
  void update(int64_t done, int64_t total);

 private:
  std::string label_, unit_;
  int64_t start_ns_, drawn_ns_ = 0;
  bool drawn_ = false;
};

// Set by the first Ctrl-C; the second ends the process at once (exit code 130).
const std::atomic<bool>& interrupted();
void catch_interrupts();
void clear_interrupt();

Result<std::string> read_stdin(size_t limit);             // everything; error past `limit` bytes
Result<std::string> read_file(const std::string& path, size_t limit);

}  // namespace minfer::cli
