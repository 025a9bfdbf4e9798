// minfer list: the cached models.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "common.h"
#include "options.h"

namespace minfer::cli {
namespace {

// A name may hold any byte; in the table it is one line.
std::string one_line(const std::string& name) {
  std::string out;
  for (const char c : for_terminal(name)) {
    if (c == '\n' || c == '\t')
      out += c == '\n' ? "\\n" : "\\t";
    else
      out += c;
  }
  return out;
}

Result<int> run(bool json) {
  const auto entries = MINFER_TRY(cached_models());
  if (json) {
    auto j = nlohmann::ordered_json::array();
    for (const auto& e : entries) j.push_back({{"name", e.name}, {"bytes", e.bytes}, {"path", e.path}});
    std::printf("%s\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return kOk;
  }
  if (entries.empty()) std::fprintf(stderr, "no models in %s\n", for_terminal(models_folder()).c_str());
  size_t width = 0;
  for (const auto& e : entries) width = std::max(width, one_line(e.name).size());
  for (const auto& e : entries) {
    std::printf("%-*s  %8.1f MB  %s\n", static_cast<int>(width), one_line(e.name).c_str(),
                static_cast<double>(e.bytes) * 1e-6, one_line(e.path).c_str());
  }
  return kOk;
}

}  // namespace

void add_list(CLI::App& app, Exit exit) {
  auto json = std::make_shared<bool>(false);
  CLI::App* sub = app.add_subcommand("list", "the cached models: name, size, path");
  sub->add_flag("--json", *json, "a JSON list");
  sub->footer("The folder is ~/.cache/minfer/models, or MINFER_MODELS.");
  on_run(*sub, exit, [json] { return run(*json); });
}

}  // namespace minfer::cli
