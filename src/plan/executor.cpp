// Running a plan: all workers walk the steps together, a barrier after each.
#include "plan/plan.h"
#include "trace/tracer.h"

namespace minfer {

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
        hooks.tracer->node({op_info(step.op).name, step.kernel_name.c_str(),
                            step.outputs.empty() ? std::string() : graph_.value(step.outputs[0]).name, step.attrs.layer,
                            t0, now_ns(), step.cost.bytes, step.cost.flops});
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
