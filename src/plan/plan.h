// Plan: a graph made ready to run on one backend: kernels chosen, buffers placed, pointers resolved.
// A plan is made once per GraphParams and run many times; running it allocates nothing.
// Threads: run() from one thread at a time per arena (plans of one cache share theirs).
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "graph/graph.h"
#include "graph/passes/pass.h"

namespace minfer {

class Tracer;

// What a graph's external values point at; outlives every plan made with it.
struct Externals {
  std::vector<TensorView> weights;  // by Value::external
  std::vector<TensorView> kv;       // by Value::external: 2*layer + is_v; layout kKvK / kKvV
};

// Memory for activations, shared by the plans of one cache since only one of them runs at a time.
struct Arena {
  Buffer memory;
};

struct PlanOptions {
  std::vector<std::string> disabled_passes;                         // MINFER_DISABLE_PASS
  std::vector<std::pair<std::string, std::string>> forced_kernels;  // MINFER_KERNEL=<op>:<name>
  int n_threads = 1;
};

// Sees every value as it is made (tensor dumps). Called by worker 0 while the others wait.
class NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  virtual Status on_value(const std::string& name, const std::string& op, int layer, const TensorView& view) = 0;
};

struct RunHooks {
  Tracer* tracer = nullptr;
  NodeObserver* observer = nullptr;
};

class Plan {
 public:
  struct Step {
    Op op;
    Attrs attrs;
    const Kernel* kernel;
    std::string kernel_name;  // "matmul_packed/avx512"
    std::vector<ValueId> inputs, outputs;
    KernelArgs args;
    Cost cost;  // attention: of the whole context for every token, as positions are not known yet
    std::vector<std::string> refusals;  // "name: reason" of better kernels that could not serve
  };

  // Runs the fusion passes, decomposes what the backend lacks, chooses kernels and places buffers.
  // Errors: a pass or verification failure, a node no kernel accepts (each refusal listed), memory.
  static Result<std::unique_ptr<Plan>> make(Graph graph, const Backend& backend, const Externals& externals,
                                            std::shared_ptr<Arena> arena, const PlanOptions& options);

  // The step's input, to be filled before run(); empty when the graph does not use it.
  std::span<int32_t> input(InputKind kind) { return inputs_[static_cast<size_t>(kind)]; }
  // Output i of the graph; valid after run() until the next run of any plan on the same arena.
  TensorView output(size_t i) const;

  Status run(ThreadPool& pool, const RunHooks& hooks);

  const Graph& graph() const { return graph_; }
  std::span<const Step> steps() const { return steps_; }
  // Of all steps, attention by the positions of the last run.
  Cost cost() const;
  size_t arena_bytes() const { return arena_bytes_; }
  const std::vector<PassReport>& pass_reports() const { return pass_reports_; }

 private:
  Plan() = default;
  Status choose_kernels(const Backend& backend, const Externals& externals, const PlanOptions& options);
  Status place(int n_threads);
  Status bind();  // resolves pointers against the arena, when it grew or moved
  TensorView view_of(ValueId id) const;
  static Cost cost_now(const Step& step);  // by the positions its inputs hold

  Graph graph_;
  std::vector<Step> steps_;
  std::vector<TensorView> views_;  // per value; data of activations set by bind()
  std::vector<int64_t> offsets_;   // per value: offset in the arena, -1 for externals and inputs
  std::array<std::vector<int32_t>, kInputKindCount> inputs_;
  std::vector<PassReport> pass_reports_;
  std::shared_ptr<Arena> arena_;
  size_t scratch_offset_ = 0, scratch_bytes_ = 0, arena_bytes_ = 0;
  std::byte* bound_to_ = nullptr;
  struct alignas(64) Counters {
    std::atomic<int64_t> a{0}, b{0};
  };
  std::vector<Counters> counters_;
};

}  // namespace minfer
