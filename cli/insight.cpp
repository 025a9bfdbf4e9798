// Hooks, dumps, and what stands in their way.
#include "insight.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/passes/pass.h"
#include "npy.h"
#include "options.h"

namespace minfer::cli {
namespace {

std::string env(const char* name) {
  const char* v = std::getenv(name);
  return v == nullptr ? "" : v;
}

std::vector<std::string> split(const std::string& text, char sep) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (at <= text.size() && !text.empty()) {
    const size_t end = std::min(text.find(sep, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Whether a file could be written there, without making it: found out before minutes of work, not after them.
Status check_writable(const std::string& path, const char* flag) {
  namespace fs = std::filesystem;
  std::error_code ec;
  const auto status = fs::status(path, ec);
  const fs::path parent = fs::path(path).parent_path();
  std::string reason;
  if (fs::is_directory(status)) {
    reason = "it is a folder";
  } else if (fs::exists(status)) {
    if (access(path.c_str(), W_OK) != 0) reason = std::strerror(errno);
  } else if (access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) != 0) {
    reason = std::strerror(errno);
  }
  if (reason.empty()) return {};
  return make_error(ErrorCode::kIo, "{}: cannot write '{}': {}", flag, path, reason);
}

// Dumps of two runs in one folder could not be told apart.
Status check_dump_dir(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ec;
  if (!fs::exists(path, ec)) return {};
  if (!fs::is_directory(path, ec)) return make_error(ErrorCode::kIo, "--dump-dir: '{}' is not a folder", path);
  fs::directory_iterator it(path, ec);
  for (; !ec && it != fs::directory_iterator(); it.increment(ec)) {
    if (it->path().extension() != ".npy") continue;
    return make_error(ErrorCode::kInvalidArgument,
                      "--dump-dir: '{}' holds dumps already ({}), expected a folder without .npy files", path,
                      it->path().filename().string());
  }
  if (ec) return make_error(ErrorCode::kIo, "--dump-dir: cannot read '{}': {}", path, ec.message());
  if (access(path.c_str(), W_OK | X_OK) != 0) {
    return make_error(ErrorCode::kIo, "--dump-dir: cannot write in '{}': {}", path, std::strerror(errno));
  }
  return {};
}

// The names in MINFER_DISABLE_PASS and MINFER_KERNEL.
Status check_plan_options(const PlanOptions& plan, const Backend& backend) {
  for (const auto& name : plan.disabled_passes) {
    std::string known;
    bool found = false;
    for (const Pass& p : fusion_passes()) {
      known += (known.empty() ? "" : ", ") + std::string(p.name);
      found = found || name == p.name;
    }
    if (!found)
      return make_error(ErrorCode::kInvalidArgument, "MINFER_DISABLE_PASS: found '{}', expected one of {}", name,
                        known);
  }
  for (const auto& [op, name] : plan.forced_kernels) {
    std::string known;
    bool op_found = false, found = false;
    for (int i = 0; i < kOpCount; ++i) {
      if (op != op_info(static_cast<Op>(i)).name) continue;
      op_found = true;
      for (const Kernel& k : backend.kernels(static_cast<Op>(i))) {
        known += (known.empty() ? "" : ", ") + std::string(k.name);
        found = found || name == k.name;
      }
    }
    if (!op_found)
      return make_error(ErrorCode::kInvalidArgument,
                        "MINFER_KERNEL: there is no op '{}' (minfer inspect --kernels lists them)", op);
    if (!found) {
      return make_error(ErrorCode::kInvalidArgument, "MINFER_KERNEL: op '{}' has no kernel '{}' on {}; there are: {}",
                        op, name, backend.name(), known.empty() ? "none" : known);
    }
  }
  return {};
}

// --dump-dir: <dir>/<step>.<value>.npy for every value a step makes.
class NpyDumper final : public NodeObserver {
 public:
  explicit NpyDumper(std::string dir) : dir_(std::move(dir)) {}
  Status on_value(const std::string& name, const std::string& op, int layer, const TensorView& view) override {
    if (op == "embed") ++step_;  // the first op of every graph
    const std::string path = fmt::format("{}/{:05d}.{}.npy", dir_, step_, name);
    return write_npy(path, view);
  }

 private:
  std::string dir_;
  int step_ = -1;
};

}  // namespace

void InsightFlags::add_to(CLI::App& app) {
  add_text(app, "--trace", trace, "write a Chrome trace to this file and print the op histogram")->group("Insight");
  add_text(app, "--dump-dir", dump_dir,
           "save every tensor of every step as .npy in this folder, which must hold none yet")
      ->group("Insight");
  add_text(app, "--dump-graph", dump_graph, "write the decode graph as Graphviz (or FILE.json) to this file")
      ->group("Insight");
}

Status InsightFlags::check() const {
  if (!trace.empty()) MINFER_TRY(check_writable(trace, "--trace"));
  if (!dump_graph.empty()) MINFER_TRY(check_writable(dump_graph, "--dump-graph"));
  if (!dump_dir.empty()) MINFER_TRY(check_dump_dir(dump_dir));
  return {};
}

Result<std::unique_ptr<Insight>> Insight::open(const InsightFlags& flags) {
  std::unique_ptr<Insight> out(new Insight(flags));
  if (!flags.trace.empty()) out->tracer_ = std::make_unique<Tracer>();
  if (!flags.dump_dir.empty()) {
    std::error_code ec;
    std::filesystem::create_directories(flags.dump_dir, ec);
    if (ec) return make_error(ErrorCode::kIo, "--dump-dir: cannot make '{}': {}", flags.dump_dir, ec.message());
    out->observer_ = std::make_unique<NpyDumper>(flags.dump_dir);
  }
  return out;
}

void Insight::hook_into(EngineOptions& options) const {
  options.tracer = tracer_.get();
  options.observer = observer_.get();
}

Status Insight::write_graph(Runner& runner) const {
  const std::string& path = flags_.dump_graph;
  if (path.empty()) return {};
  const Plan* plan = MINFER_TRY(runner.plan_for(1, 1, 1, 0));
  std::ofstream f(path);
  f << (path.ends_with(".json") ? to_json(plan->graph()) : to_dot(plan->graph()));
  if (!f.flush()) return make_error(ErrorCode::kIo, "--dump-graph: cannot write '{}': {}", path, std::strerror(errno));
  return {};
}

Status Insight::write_graph(Engine& engine) const {
  if (flags_.dump_graph.empty()) return {};
  Status written;
  MINFER_CHECK(engine.inspect([&](Runner& runner) { written = write_graph(runner); }));  // it is not closing
  return written;
}

Status Insight::finish() const {
  if (tracer_ == nullptr) return {};
  std::fputs(tracer_->histogram().c_str(), stderr);
  return tracer_->write_chrome_trace(flags_.trace);
}

Result<PlanOptions> plan_options(const BackendOptions& backend) {
  PlanOptions plan;
  plan.disabled_passes = split(env("MINFER_DISABLE_PASS"), ',');
  for (const auto& item : split(env("MINFER_KERNEL"), ',')) {
    const size_t colon = item.find(':');
    if (colon == std::string::npos) {
      return make_error(ErrorCode::kInvalidArgument, "MINFER_KERNEL: found '{}', expected <op>:<kernel>", item);
    }
    plan.forced_kernels.emplace_back(item.substr(0, colon), item.substr(colon + 1));
  }
  const auto made = MINFER_TRY(make_backend(backend));
  MINFER_TRY(check_plan_options(plan, *made));
  return plan;
}

}  // namespace minfer::cli
