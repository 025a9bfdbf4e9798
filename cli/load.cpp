// Finding and loading models, with the hooks of --trace, --dump-dir and --dump-graph.
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "common.h"
#include "npy.h"

namespace minfer::cli {
namespace fs = std::filesystem;
namespace {

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
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

std::string models_folder() {
  if (const char* dir = std::getenv("MINFER_MODELS"); dir != nullptr && *dir != 0) return dir;
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.cache/minfer/models";
}

Result<std::string> resolve_model(const std::string& name) {
  std::error_code ec;
  if (fs::exists(name, ec)) return name;
  std::vector<std::string> exact, prefix, all;
  const std::string want = lower(name);
  for (const auto& entry : fs::directory_iterator(models_folder(), ec)) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string stem = lower(entry.path().stem().string());
    all.push_back(entry.path().stem().string());
    if (stem == want || lower(entry.path().filename().string()) == want) exact.push_back(entry.path().string());
    if (!want.empty() && stem.rfind(want, 0) == 0) prefix.push_back(entry.path().string());
  }
  if (exact.size() == 1) return exact[0];
  if (exact.empty() && prefix.size() == 1) return prefix[0];
  std::sort(all.begin(), all.end());
  std::string known;
  for (const auto& a : all) known += "\n  " + a;
  if (prefix.size() > 1) return make_error(ErrorCode::kNotFound, "model '{}': more than one cached model begins so:{}", name, known);
  return make_error(ErrorCode::kNotFound, "model '{}': no such file, and no cached model of that name in {}{}", name, models_folder(),
                    known.empty() ? " (which holds none)" : ":" + known);
}

Result<Loaded> load(const std::string& name, const EngineFlags& flags, int32_t n_seqs) {
  return load(MINFER_TRY(Model::open(MINFER_TRY(resolve_model(name)))), flags, n_seqs);
}

Result<Loaded> load(std::unique_ptr<Model> model, const EngineFlags& flags, int32_t n_seqs) {
  Loaded out;
  out.model = std::move(model);
  RunnerOptions options = MINFER_TRY(flags.options());
  options.n_seqs = n_seqs;
  {
    Progress bar("loading " + out.model->name(), "B");
    options.progress = [&](int64_t done, int64_t total) {
      bar.update(done, total);
      return !interrupted();
    };
    out.runner = MINFER_TRY(Runner::create(*out.model, options));
  }
  if (!flags.trace.empty()) {
    std::ofstream probe(flags.trace);  // now, not after minutes of work
    if (!probe) return make_error(ErrorCode::kIo, "--trace: cannot write '{}': {}", flags.trace, std::strerror(errno));
    out.tracer = std::make_unique<Tracer>();
    out.trace_path = flags.trace;
    out.runner->hooks.tracer = out.tracer.get();
  }
  if (!flags.dump_dir.empty()) {
    std::error_code ec;
    fs::create_directories(flags.dump_dir, ec);
    if (ec) return make_error(ErrorCode::kIo, "--dump-dir: cannot make '{}': {}", flags.dump_dir, ec.message());
    out.observer = std::make_unique<NpyDumper>(flags.dump_dir);
    out.runner->hooks.observer = out.observer.get();
  }
  if (!flags.dump_graph.empty()) {
    const Plan* plan = MINFER_TRY(out.runner->plan_for(1, 1, 1, 0));
    std::ofstream f(flags.dump_graph);
    f << (flags.dump_graph.ends_with(".json") ? to_json(plan->graph()) : to_dot(plan->graph()));
    if (!f.flush()) return make_error(ErrorCode::kIo, "--dump-graph: cannot write '{}': {}", flags.dump_graph, std::strerror(errno));
  }
  return out;
}

Status Loaded::finish() {
  if (!tracer) return {};
  std::fputs(tracer->histogram().c_str(), stderr);
  return tracer->write_chrome_trace(trace_path);
}

}  // namespace minfer::cli
