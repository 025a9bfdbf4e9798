// What the commands share: flags, opening a model with progress, printing errors, Ctrl-C.
// Exit codes: 0 fine, 1 the run failed, 2 the arguments were wrong, 130 Ctrl-C. Answers go to stdout, everything else
// to stderr.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/runner.h"
#include "insight.h"
#include "minfer/sampling.h"

namespace CLI {
class App;
}

namespace minfer::cli {

inline constexpr int kOk = 0, kFailed = 1, kBadArguments = 2, kInterrupted = 130;

// Prints "minfer: <message>" to stderr and returns the exit code of the error: 130 if the user stopped it, 2 if it says
// that an argument is wrong, 1 for everything else.
int report(const Error& error);
// The same text with control characters escaped, but for line ends and tabs, and bytes that are not UTF-8 replaced:
// what comes from a file or a file's name must not speak to the terminal.
std::string for_terminal(std::string_view text);

// For what a file holds or is: no argument is wrong because of it, so that the exit code is 1.
Error fault_of_file(Error error);
template <typename T>
Result<T> of_file(Result<T> result) {
  if (!result.ok()) return fault_of_file(std::move(result).error());
  return result;
}

// Every command: adds its subcommand with flags, help and examples to `app`; the callback stores the exit code.
using Exit = std::shared_ptr<int>;
void add_run(CLI::App& app, Exit exit);
void add_chat(CLI::App& app, Exit exit);
void add_logits(CLI::App& app, Exit exit);
void add_tokenize(CLI::App& app, Exit exit);  // tokenize and detokenize
void add_template(CLI::App& app, Exit exit);
void add_inspect(CLI::App& app, Exit exit);
void add_bench(CLI::App& app, Exit exit);
void add_perplexity(CLI::App& app, Exit exit);
void add_quantize(CLI::App& app, Exit exit);
void add_list(CLI::App& app, Exit exit);
void add_batch(CLI::App& app, Exit exit);
void add_replay(CLI::App& app, Exit exit);

// --- flags ---------------------------------------------------------------------------------------------------------
// Device, threads, context, cache types, trace and dumps; the environment stands in for a flag that is not given
// (MINFER_THREADS, MINFER_CACHE_TYPE, MINFER_TRACE, MINFER_DUMP_DIR, MINFER_ISA: on_run() reads them), and options()
// reads MINFER_DISABLE_PASS and MINFER_KERNEL.
// Where a command runs.
struct PlaceFlags {
  std::string device, isa;
  int threads = 0;
  void add_to(CLI::App& app);
};

struct CacheTypeFlags {
  std::string both, k, v;
  void add_to(CLI::App& app);
  struct Types {
    DType k, v;
  };
  Result<Types> resolve() const;  // errors: a type that no cache has, with the flag
};

struct EngineFlags : InsightFlags {
  PlaceFlags place;
  CacheTypeFlags cache_types;
  int ctx = 0, chunk = 0;
  bool stats = false, json = false;
  void add_to(CLI::App& app, bool with_json = true);
  Result<RunnerOptions> options() const;
  // Everything that can be wrong about them without a model: to be called before anything slow.
  Status check() const;
};

struct SamplingFlags {
  SamplingParams params;
  std::vector<std::string> logit_bias;    // "id=value" or "id=-inf"
  std::vector<std::string> dry_breakers;  // escaped; "none" clears the list, empty: the usual ones
  std::string samplers;                   // "top_k;temperature"; empty: the usual order
  std::optional<uint64_t> seed;           // absent: a fresh one, printed with --stats
  void add_to(CLI::App& app);
  // Everything that can be told without a model.
  Result<SamplingParams> resolve() const;
  // What needs its vocabulary: DRY's breakers as ids. Errors: a --logit-bias for a token that the model does not have.
  // `tokenizer` may be null.
  Status fit(SamplingParams& params, const Tokenizer* tokenizer, int32_t n_vocab) const;
  Result<std::vector<std::string>> breaker_texts() const;
};

// --- models --------------------------------------------------------------------------------------------------------
std::string cache_folder();   // ~/.cache/minfer; without HOME the home folder of the user database
std::string models_folder();  // MINFER_MODELS or <cache folder>/models
struct CachedModel {
  std::string name, path;  // name: without .gguf
  uint64_t bytes;
};
// The regular files *.gguf there, by name. A folder that is not there holds none.
Result<std::vector<CachedModel>> cached_models();
// The path of a file, or the name of a cached one: its stem or a unique prefix of one, in any case. Errors list what is
// cached.
Result<std::string> resolve_model(const std::string& name);
Result<std::unique_ptr<Model>> open_model(const std::string& name);  // all errors are the file's

// A model on a backend, with a progress bar once loading takes more than a second, and the hooks of the flags in place.
struct Loaded {
  std::unique_ptr<Model> model;
  std::unique_ptr<Insight> insight;
  std::unique_ptr<Runner> runner;
  Status finish() { return insight->finish(); }
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

// Ctrl-C ends the process at once with exit code 130, until catch_interrupts(): from then on the first only sets
// interrupted(), which the command polls, and the second ends the process.
void set_up_interrupts();
void catch_interrupts();
const std::atomic<bool>& interrupted();
void clear_interrupt();

Result<std::string> read_stdin(size_t limit);                           // everything; error past `limit` bytes
Result<std::string> read_input(const std::string& path, size_t limit);  // a regular file, or "-": standard input

}  // namespace minfer::cli
