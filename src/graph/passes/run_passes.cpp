// The list of fusions and their runner.
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "graph/passes/passes.h"

namespace minfer {
namespace {

constexpr Pass kFusions[] = {
    {"merge_equal", merge_equal},
    {"fuse_rms_norm_mul", fuse_rms_norm_mul},
    {"fuse_gated_act", fuse_gated_act},
    {"fuse_matmul_add", fuse_matmul_add},
    {"fuse_matmul_group", fuse_matmul_group},
    {"fuse_norm_matmul", fuse_norm_matmul},
    {"fuse_rope_store", fuse_rope_store},
    {"fuse_attention", fuse_attention},
    {"remove_dead", remove_dead},
};

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::span<const Pass> fusion_passes() { return kFusions; }

Result<std::vector<PassReport>> run_passes(Graph& graph, std::span<const Pass> passes,
                                           const std::vector<std::string>& disabled, const PassObserver& observer) {
  for (const std::string& name : disabled) {
    if (std::any_of(passes.begin(), passes.end(), [&](const Pass& p) { return name == p.name; })) continue;
    std::string valid;
    for (const Pass& p : passes) valid += std::string(valid.empty() ? "" : ", ") + p.name;
    return make_error(ErrorCode::kInvalidArgument, "[passes] there is no pass '{}' to disable; the passes are {}", name,
                      valid);
  }
  std::vector<PassReport> reports;
  for (const Pass& pass : passes) {
    PassReport report;
    report.name = pass.name;
    report.nodes_before = report.nodes_after = static_cast<int>(graph.nodes.size());
    report.skipped = std::find(disabled.begin(), disabled.end(), pass.name) != disabled.end();
    if (!report.skipped) {
      if (observer) observer(pass.name, false, graph);
      const auto start = std::chrono::steady_clock::now();
      MINFER_TRY_CTX(pass.run(graph), std::string("[passes] ") + pass.name);
      report.ms = ms_since(start);
      report.nodes_after = static_cast<int>(graph.nodes.size());
      MINFER_TRY_CTX(verify(graph), std::string("[passes] after ") + pass.name);
      if (observer) observer(pass.name, true, graph);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::vector<std::string> disabled_passes_from_env() {
  std::vector<std::string> names;
  const char* text = std::getenv("MINFER_DISABLE_PASS");
  if (text == nullptr) return names;
  std::string name;
  for (const char* p = text;; ++p) {
    if (*p != ',' && *p != '\0') {
      if (*p != ' ') name += *p;
      continue;
    }
    if (!name.empty()) names.push_back(std::move(name));
    name.clear();
    if (*p == '\0') return names;
  }
}

}  // namespace minfer
