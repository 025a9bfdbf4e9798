// Making a plan: passes, decomposition, kernel choice, placement.
#include "plan/plan.h"

#include <algorithm>

#include "plan/allocator.h"
#include "plan/liveness.h"

namespace minfer {
namespace {

struct Described {
  TensorView in[kMaxInputs], out[kMaxOutputs];
  bool present[kMaxInputs] = {};
};

NodeDesc describe(const Graph& graph, const Node& node, const std::vector<TensorView>& views, Described& d) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    d.present[i] = node.inputs[i] != kNoValue;
    if (d.present[i]) d.in[i] = views[static_cast<size_t>(node.inputs[i])];
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) d.out[i] = views[static_cast<size_t>(node.outputs[i])];
  return NodeDesc{
      node.op, node.attrs, {d.in, node.inputs.size()}, {d.out, node.outputs.size()}, {d.present, node.inputs.size()}};
}

const std::string* forced_name(const PlanOptions& options, Op op) {
  for (const auto& [o, name] : options.forced_kernels) {
    if (o == op_info(op).name) return &name;
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<Plan>> Plan::make(Graph graph, const Backend& backend, const Externals& externals,
                                         std::shared_ptr<Arena> arena, const PlanOptions& options) {
  std::unique_ptr<Plan> plan(new Plan);
  plan->graph_ = std::move(graph);
  plan->arena_ = std::move(arena);
  plan->pass_reports_ = MINFER_TRY_CTX(run_passes(plan->graph_, fusion_passes(), options.disabled_passes), "[plan]");
  MINFER_TRY_CTX(decompose(plan->graph_,
                           [&](const Graph&, const Node& node) {
                             return !op_info(node.op).composite || !backend.kernels(node.op).empty();
                           }),
                 "[plan]");
  MINFER_TRY_CTX(verify(plan->graph_), "[plan]");
  MINFER_TRY(plan->choose_kernels(backend, externals, options));
  MINFER_TRY(plan->place(options.n_threads));
  return plan;
}

Status Plan::choose_kernels(const Backend& backend, const Externals& externals, const PlanOptions& options) {
  views_.assign(graph_.values.size(), {});
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const Value& v = graph_.values[i];
    TensorView& view = views_[i];
    const auto ext = static_cast<size_t>(v.external);
    switch (v.kind) {
      case ValueKind::kWeight:
        MINFER_CHECK(ext < externals.weights.size());
        view = externals.weights[ext];
        break;
      case ValueKind::kKvRegion:
        MINFER_CHECK(ext < externals.kv.size());
        view = externals.kv[ext];
        break;
      case ValueKind::kInput:
        inputs_[static_cast<size_t>(v.input)].assign(static_cast<size_t>(v.shape.count()), 0);
        [[fallthrough]];
      case ValueKind::kActivation:
        view.dtype = v.dtype;
        view.shape = v.shape;
        view.row_bytes = dtype_row_bytes(v.dtype, v.shape.last());
        break;
    }
  }
  for (const Node& node : graph_.nodes) {
    Step step;
    step.op = node.op;
    step.attrs = node.attrs;
    step.inputs = node.inputs;
    step.outputs = node.outputs;
    step.kernel = nullptr;
    Described d;
    const NodeDesc desc = describe(graph_, node, views_, d);
    const std::string* forced = forced_name(options, node.op);
    for (const Kernel& k : backend.kernels(node.op)) {
      Refusal refusal = k.accepts(desc);
      if (refusal.empty() && forced != nullptr && *forced != k.name) refusal = "another kernel is forced: " + *forced;
      if (refusal.empty()) {
        step.kernel = &k;
        break;
      }
      step.refusals.push_back(std::string(k.name) + "/" + k.isa + ": " + refusal);
    }
    if (step.kernel == nullptr) {
      std::string all;
      for (const auto& r : step.refusals) all += "; " + r;
      return make_error(ErrorCode::kUnsupported, "[plan] {} of layer {}: no kernel of device '{}' accepts it{}",
                        op_text(node.op, graph_.input_descs(node)), node.attrs.layer, backend.name(),
                        all.empty() ? "; it has none" : all);
    }
    step.kernel_name = std::string(step.kernel->name) + "/" + step.kernel->isa;
    step.cost = node_cost(desc);
    steps_.push_back(std::move(step));
  }
  return {};
}

Status Plan::place(int n_threads) {
  const auto life = lifetimes(graph_);
  std::vector<int32_t> home(graph_.values.size(), -1);  // value -> allocation
  std::vector<Allocation> allocations;
  auto bytes_of = [&](ValueId id) {
    const Value& v = graph_.value(id);
    return v.shape.rows() * dtype_row_bytes(v.dtype, v.shape.last());
  };
  for (size_t n = 0; n < steps_.size(); ++n) {
    const Step& step = steps_[n];
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      const ValueId out = step.outputs[o];
      const auto& l = life[static_cast<size_t>(out)];
      const int k = step.kernel->in_place;
      if (o == 0 && k >= 0 && static_cast<size_t>(k) < step.inputs.size() &&
          step.inputs[static_cast<size_t>(k)] != kNoValue) {
        const ValueId in = step.inputs[static_cast<size_t>(k)];
        const auto& li = life[static_cast<size_t>(in)];
        const int uses = static_cast<int>(std::count(step.inputs.begin(), step.inputs.end(), in));
        if (home[static_cast<size_t>(in)] >= 0 && li.last == static_cast<int32_t>(n) && uses == 1 &&
            bytes_of(in) == bytes_of(out)) {
          home[static_cast<size_t>(out)] = home[static_cast<size_t>(in)];
          auto& a = allocations[static_cast<size_t>(home[static_cast<size_t>(out)])];
          a.last = std::max(a.last, l.last);
          continue;
        }
      }
      home[static_cast<size_t>(out)] = static_cast<int32_t>(allocations.size());
      allocations.push_back({bytes_of(out), l.first, l.last, -1});
    }
    if (step.kernel->scratch_bytes != nullptr) {
      Described d;
      const NodeDesc desc = describe(graph_, graph_.nodes[n], views_, d);
      scratch_bytes_ = std::max(scratch_bytes_, step.kernel->scratch_bytes(desc, n_threads));
    }
  }
  const int64_t total = place_allocations(allocations, Buffer::kAlignment);
  offsets_.assign(graph_.values.size(), -1);
  for (size_t v = 0; v < home.size(); ++v) {
    if (home[v] >= 0) offsets_[v] = allocations[static_cast<size_t>(home[v])].offset;
  }
  scratch_offset_ = static_cast<size_t>(total);
  arena_bytes_ = scratch_offset_ + (scratch_bytes_ + 63) / 64 * 64;
  counters_ = std::vector<Counters>(steps_.size());
  if (arena_->memory.bytes() < arena_bytes_) {
    arena_->memory = MINFER_TRY_CTX(Buffer::allocate(arena_bytes_), "[plan] activations");
  }
  return bind();
}

Status Plan::bind() {
  if (bound_to_ == arena_->memory.data() && bound_to_ != nullptr) return {};
  bound_to_ = arena_->memory.data();
  for (size_t v = 0; v < views_.size(); ++v) {
    if (offsets_[v] >= 0) views_[v].data = bound_to_ + offsets_[v];
    if (graph_.values[v].kind == ValueKind::kInput) {
      views_[v].data = reinterpret_cast<std::byte*>(inputs_[static_cast<size_t>(graph_.values[v].input)].data());
    }
  }
  for (size_t s = 0; s < steps_.size(); ++s) {
    Step& step = steps_[s];
    KernelArgs& a = step.args;
    a.attrs = &step.attrs;
    a.n_in = static_cast<int>(step.inputs.size());
    a.n_out = static_cast<int>(step.outputs.size());
    for (size_t i = 0; i < step.inputs.size(); ++i) a.in[i] = view_of(step.inputs[i]);
    for (size_t i = 0; i < step.outputs.size(); ++i) a.out[i] = view_of(step.outputs[i]);
    a.scratch = bound_to_ + scratch_offset_;
    a.scratch_bytes = scratch_bytes_;
    a.counter = &counters_[s].a;
    a.counter2 = &counters_[s].b;
  }
  return {};
}

TensorView Plan::view_of(ValueId id) const { return id == kNoValue ? TensorView{} : views_[static_cast<size_t>(id)]; }

TensorView Plan::output(size_t i) const { return view_of(graph_.outputs[i]); }

}  // namespace minfer
