// Sums, the histogram text and the Chrome trace file.
#include "trace/tracer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace minfer {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Tracer::node(NodeEvent event) {
  auto it = std::find_if(totals_.begin(), totals_.end(),
                         [&](const OpTotal& t) { return t.op == event.op && t.kernel == event.kernel; });
  if (it == totals_.end()) it = totals_.insert(totals_.end(), OpTotal{event.op, event.kernel});
  it->calls += 1;
  it->seconds += static_cast<double>(event.end_ns - event.start_ns) * 1e-9;
  it->bytes += event.bytes;
  it->flops += event.flops;
  if (nodes_.size() < kMaxEvents) {
    nodes_.push_back(std::move(event));
  } else {
    ++dropped_;
  }
}

void Tracer::step(StepEvent event) {
  if (steps_.size() < kMaxEvents) steps_.push_back(event);
}

std::vector<OpTotal> Tracer::totals() const {
  auto sorted = totals_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const OpTotal& a, const OpTotal& b) { return a.seconds > b.seconds; });
  return sorted;
}

std::string Tracer::histogram() const {
  double all = 0;
  for (const auto& t : totals_) all += t.seconds;
  std::string text = fmt::format("{:<16} {:<26} {:>9} {:>11} {:>11} {:>8} {:>9} {:>6}\n", "op", "kernel", "calls",
                                 "time ms", "MB", "GB/s", "GFLOP/s", "share");
  int64_t calls = 0;
  for (const auto& t : totals()) {
    calls += t.calls;
    text += fmt::format("{:<16} {:<26} {:>9} {:>11.3f} {:>11.2f} {:>8.2f} {:>9.2f} {:>5.1f}%\n", t.op, t.kernel,
                        t.calls, t.seconds * 1e3, t.bytes * 1e-6, t.seconds > 0 ? t.bytes / t.seconds * 1e-9 : 0.0,
                        t.seconds > 0 ? t.flops / t.seconds * 1e-9 : 0.0, all > 0 ? 100 * t.seconds / all : 0.0);
  }
  text += fmt::format("{:<16} {:<26} {:>9} {:>11.3f}   in {} steps\n", "total", "", calls, all * 1e3, steps_.size());
  if (dropped_ > 0)
    text +=
        fmt::format("({} events past the first {} are in the sums but not in the trace file)\n", dropped_, kMaxEvents);
  return text;
}

Status Tracer::write_chrome_trace(const std::string& path) const {
  FILE* f = std::fopen(path.c_str(), "wb");
  if (f == nullptr) return make_error(ErrorCode::kIo, "[trace] cannot write '{}': {}", path, std::strerror(errno));
  int64_t t0 = 0;
  if (!steps_.empty()) t0 = steps_.front().start_ns;
  if (!nodes_.empty()) t0 = std::min(t0 == 0 ? nodes_.front().start_ns : t0, nodes_.front().start_ns);
  std::fputs("{\"traceEvents\":[\n", f);
  bool first = true;
  auto emit = [&](const nlohmann::json& j) {
    if (!first) std::fputs(",\n", f);
    first = false;
    std::fputs(j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str(), f);
  };
  for (const auto& s : steps_) {
    emit({{"ph", "X"},
          {"pid", 1},
          {"tid", 0},
          {"name", "step"},
          {"cat", "step"},
          {"ts", static_cast<double>(s.start_ns - t0) * 1e-3},
          {"dur", static_cast<double>(s.end_ns - s.start_ns) * 1e-3},
          {"args", {{"n_tokens", s.n_tokens}, {"n_outputs", s.n_outputs}}}});
  }
  for (const auto& n : nodes_) {
    emit({{"ph", "X"},
          {"pid", 1},
          {"tid", 1},
          {"name", n.op},
          {"cat", "op"},
          {"ts", static_cast<double>(n.start_ns - t0) * 1e-3},
          {"dur", static_cast<double>(n.end_ns - n.start_ns) * 1e-3},
          {"args",
           {{"value", n.name}, {"kernel", n.kernel}, {"layer", n.layer}, {"bytes", n.bytes}, {"flops", n.flops}}}});
  }
  std::fputs("\n],\"displayTimeUnit\":\"ms\"}\n", f);
  const bool bad = std::ferror(f) != 0;
  if (std::fclose(f) != 0 || bad)
    return make_error(ErrorCode::kIo, "[trace] writing '{}' failed: {}", path, std::strerror(errno));
  return {};
}

}  // namespace minfer
