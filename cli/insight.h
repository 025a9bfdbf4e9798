// What a command shows of its runs: --trace, --dump-dir and --dump-graph, and the variables that change plans.
// Errors:  what cannot be written, before the model is loaded where that can be told.
// Threads: one; the hooks are the engine's while something runs.
#pragma once

#include <memory>
#include <string>

#include "engine/runner.h"
#include "minfer/engine.h"
#include "trace/tracer.h"

namespace CLI {
class App;
}

namespace minfer::cli {

struct InsightFlags {
  std::string trace, dump_dir, dump_graph;
  void add_to(CLI::App& app);
  Status check() const;  // everything that can be wrong about them without a model: before anything slow
};

// The tracer and the tensor dumps that the flags ask for. It outlives what it is hooked into.
class Insight {
 public:
  static Result<std::unique_ptr<Insight>> open(const InsightFlags& flags);
  RunHooks hooks() const { return {tracer_.get(), observer_.get()}; }
  void hook_into(EngineOptions& options) const;
  // --dump-graph: that of one token of one sequence.
  Status write_graph(Runner& runner) const;
  Status write_graph(Engine& engine) const;
  // Writes the trace file and prints the op histogram. Requires: nothing runs.
  Status finish() const;

 private:
  explicit Insight(const InsightFlags& flags) : flags_(flags) {}
  const InsightFlags flags_;
  std::unique_ptr<Tracer> tracer_;
  std::unique_ptr<NodeObserver> observer_;
};

// MINFER_DISABLE_PASS and MINFER_KERNEL. Errors: names that are none, with those that are.
Result<PlanOptions> plan_options(const BackendOptions& backend);

}  // namespace minfer::cli
