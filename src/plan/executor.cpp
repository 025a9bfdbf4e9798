// Running a plan: all workers walk the steps together, a barrier after each.
#include "plan/plan.h"
#include "trace/tracer.h"

namespace minfer {

Cost Plan::cost_now(const Step& step) {
  if (step.op != Op::kAttention && step.op != Op::kAttnScores && step.op != Op::kAttnMix) return step.cost;
  const KernelArgs& args = step.args;
  bool present[kMaxInputs];
  for (int i = 0; i < args.n_in; ++i) present[i] = !args.in[i].absent();
  const auto n_in = static_cast<size_t>(args.n_in), n_out = static_cast<size_t>(args.n_out);
  return node_cost(
      {step.op, step.attrs, std::span(args.in, n_in), std::span(args.out, n_out), std::span(present, n_in)});
}

Cost Plan::cost() const {
  Cost sum;
  for (const Step& step : steps_) {
    const Cost c = cost_now(step);
    sum.bytes += c.bytes;
    sum.flops += c.flops;
  }
  return sum;
}

Status Plan::run(ThreadPool& pool, const RunHooks& hooks) {
  MINFER_TRY(bind());
  for (auto& c : counters_) {
    c.a.store(0, std::memory_order_relaxed);
    c.b.store(0, std::memory_order_relaxed);
  }
  const int64_t begin = hooks.tracer != nullptr ? now_ns() : 0;
  Status status = pool.run([&](Worker& w) {
    const bool lead = w.index() == 0;
    for (const Step& step : steps_) {
      const int64_t t0 = hooks.tracer != nullptr && lead ? now_ns() : 0;
      step.kernel->run(step.args, w);
      if (!w.barrier()) return;
      if (hooks.tracer != nullptr && lead) {
        const int64_t t1 = now_ns();
        const Cost cost = cost_now(step);
        hooks.tracer->node({op_info(step.op).name, step.kernel_name.c_str(),
                            step.outputs.empty() ? std::string() : graph_.value(step.outputs[0]).name, step.attrs.layer,
                            t0, t1, cost.bytes, cost.flops});
      }
      if (hooks.observer != nullptr) {
        if (lead) {
          for (ValueId id : step.outputs) {
            auto seen =
                hooks.observer->on_value(graph_.value(id).name, op_info(step.op).name, step.attrs.layer, view_of(id));
            if (!seen.ok()) w.fail(std::move(seen).error());
          }
        }
        if (!w.barrier()) return;
      }
    }
  });
  if (!status.ok()) return std::move(status).error().with_context("[step]");
  if (hooks.tracer != nullptr) {
    const auto rows = graph_.outputs.empty() ? 0 : output(0).shape.rows();
    hooks.tracer->step({static_cast<int32_t>(inputs_[static_cast<size_t>(InputKind::kTokens)].size()),
                        static_cast<int32_t>(rows), begin, now_ns()});
  }
  return {};
}

}  // namespace minfer
