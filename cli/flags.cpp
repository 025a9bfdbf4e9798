// Flags shared by the commands that run a model.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "common.h"
#include "graph/passes/pass.h"
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

Result<DType> cache_dtype(const std::string& name, const char* flag) {
  const auto t = dtype_from_name(name);
  if (t && (*t == DType::kF32 || *t == DType::kF16 || *t == DType::kBF16 || *t == DType::kQ8_0)) return *t;
  return make_error(ErrorCode::kInvalidArgument, "{}: found '{}', expected f32, f16, bf16 or q8_0", flag, name);
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

}  // namespace

void PlaceFlags::add_to(CLI::App& app) {
  add_text(app, "--device,--backend", device, "where to run: cpu (default) or ref, the scalar definition")
      ->group("Engine");
  add_isa(app, isa, "force an instruction set: scalar, avx2, avxvnni, avx512, neon")->group("Engine");
  add_integer(app, "--threads,-t", threads, kThreads, "threads (default: the physical cores this process may use)")
      ->group("Engine");
}

void CacheTypeFlags::add_to(CLI::App& app) {
  add_text(app, "--cache-type", both, "type of the KV cache: f32, f16 (default), bf16, q8_0")->group("Engine");
  add_text(app, "--cache-type-k", k, "type of K alone")->group("Engine");
  add_text(app, "--cache-type-v", v, "type of V alone")->group("Engine");
}

Result<CacheTypeFlags::Types> CacheTypeFlags::resolve() const {
  const DType type = MINFER_TRY(cache_dtype(both.empty() ? "f16" : both, "--cache-type"));
  Types t{type, type};
  if (!k.empty()) t.k = MINFER_TRY(cache_dtype(k, "--cache-type-k"));
  if (!v.empty()) t.v = MINFER_TRY(cache_dtype(v, "--cache-type-v"));
  return t;
}

void EngineFlags::add_to(CLI::App& app, bool with_json) {
  constexpr Range kChunk = {1, 4096};  // Runner::max_batch()
  place.add_to(app);
  add_integer(app, "--ctx,-c", ctx, kPositive,
              "positions of context (default: what the model was trained for, as memory allows)")
      ->group("Engine");
  add_integer(app, "--chunk", chunk, kChunk, "tokens per prefill step (default 512); changes speed, never the result")
      ->group("Engine");
  cache_types.add_to(app);
  app.add_flag("--stats", stats, "print timings and memory to stderr")->group("Insight");
  add_text(app, "--trace", trace, "write a Chrome trace to this file and print the op histogram")->group("Insight");
  add_text(app, "--dump-dir", dump_dir,
           "save every tensor of every step as .npy in this folder, which must hold none yet")
      ->group("Insight");
  add_text(app, "--dump-graph", dump_graph, "write the decode graph as Graphviz (or FILE.json) to this file")
      ->group("Insight");
  if (with_json) app.add_flag("--json", json, "print one JSON object")->group("Insight");
}

Status EngineFlags::check() const {
  const RunnerOptions o = MINFER_TRY(options());
  const auto backend = MINFER_TRY(make_backend(o.backend));
  MINFER_TRY(check_plan_options(o.plan, *backend));
  if (!trace.empty()) MINFER_TRY(check_writable(trace, "--trace"));
  if (!dump_graph.empty()) MINFER_TRY(check_writable(dump_graph, "--dump-graph"));
  if (!dump_dir.empty()) MINFER_TRY(check_dump_dir(dump_dir));
  return {};
}

Result<RunnerOptions> EngineFlags::options() const {
  RunnerOptions o;
  if (!place.device.empty()) o.backend.device = place.device;
  o.backend.isa = place.isa;
  o.n_threads = place.threads;
  o.n_ctx = ctx;
  o.chunk = chunk;
  const auto types = MINFER_TRY(cache_types.resolve());
  o.type_k = types.k;
  o.type_v = types.v;
  o.plan.disabled_passes = split(env("MINFER_DISABLE_PASS"), ',');
  for (const auto& item : split(env("MINFER_KERNEL"), ',')) {
    const size_t colon = item.find(':');
    if (colon == std::string::npos) {
      return make_error(ErrorCode::kInvalidArgument, "MINFER_KERNEL: found '{}', expected <op>:<kernel>", item);
    }
    o.plan.forced_kernels.emplace_back(item.substr(0, colon), item.substr(colon + 1));
  }
  return o;
}

}  // namespace minfer::cli
