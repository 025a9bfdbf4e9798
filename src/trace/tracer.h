// Tracer: what every op of a run cost. Collects one event per executed node, sums them by op, and writes the
// events as a Chrome trace (chrome://tracing, Perfetto).
// Threads: one recording thread; readers only when no run is in progress.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace minfer {

struct NodeEvent {
  const char* op;      // static text
  std::string kernel;  // "matmul_packed/avx512"
  std::string name;    // value name, "l3.ffn_down"
  int32_t layer;
  int64_t start_ns, end_ns;
  double bytes, flops;
};

// One forward step: what it was and which events belong to it.
struct StepEvent {
  int32_t n_tokens, n_outputs;
  int64_t start_ns, end_ns;
};

struct OpTotal {
  std::string op;
  std::string kernel;
  int64_t calls = 0;
  double seconds = 0, bytes = 0, flops = 0;
};

class Tracer {
 public:
  void node(NodeEvent event);
  void step(StepEvent event);

  const std::vector<NodeEvent>& nodes() const { return nodes_; }
  const std::vector<StepEvent>& steps() const { return steps_; }
  // Totals by op and kernel, most time first.
  std::vector<OpTotal> totals() const;
  // The table printed by --trace: op, calls, time, bytes, GB/s, GFLOP/s, share.
  std::string histogram() const;
  Status write_chrome_trace(const std::string& path) const;

 private:
  // Events kept for the Chrome trace; totals go on counting past it. About 100 bytes each.
  static constexpr size_t kMaxEvents = 1 << 20;
  std::vector<NodeEvent> nodes_;
  std::vector<StepEvent> steps_;
  std::vector<OpTotal> totals_;
  int64_t dropped_ = 0;
};

int64_t now_ns();  // monotonic clock

}  // namespace minfer
