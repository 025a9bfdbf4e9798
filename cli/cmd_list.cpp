// minfer list: the cached models.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "common.h"

namespace minfer::cli {
namespace fs = std::filesystem;
namespace {

struct Entry {
  std::string name, path;
  uint64_t bytes;
};

Result<int> run(bool json) {
  const std::string folder = models_folder();
  std::vector<Entry> entries;
  std::error_code ec;
  fs::directory_iterator it(folder, ec);
  if (ec && ec != std::errc::no_such_file_or_directory) {
    return make_error(ErrorCode::kIo, "models folder '{}': cannot read: {}", folder, ec.message());
  }
  for (; !ec && it != fs::directory_iterator(); it.increment(ec)) {
    std::error_code file_ec;
    if (it->path().extension() != ".gguf" || !it->is_regular_file(file_ec)) continue;
    const uint64_t bytes = it->file_size(file_ec);
    if (!file_ec) entries.push_back({it->path().stem().string(), it->path().string(), bytes});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  if (json) {
    auto j = nlohmann::ordered_json::array();
    for (const auto& e : entries) j.push_back({{"name", e.name}, {"bytes", e.bytes}, {"path", e.path}});
    std::printf("%s\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return kOk;
  }
  if (entries.empty()) std::fprintf(stderr, "no models in %s\n", folder.c_str());
  size_t width = 0;
  for (const auto& e : entries) width = std::max(width, e.name.size());
  for (const auto& e : entries) {
    std::printf("%-*s  %8.1f MB  %s\n", static_cast<int>(width), e.name.c_str(), static_cast<double>(e.bytes) * 1e-6,
                e.path.c_str());
  }
  return kOk;
}

}  // namespace

void add_list(CLI::App& app, Exit exit) {
  auto json = std::make_shared<bool>(false);
  CLI::App* sub = app.add_subcommand("list", "the cached models: name, size, path");
  sub->add_flag("--json", *json, "a JSON list");
  sub->footer("The folder is ~/.cache/minfer/models, or MINFER_MODELS.");
  sub->callback([=] {
    auto r = run(*json);
    *exit = r.ok() ? *r : report(r.error());
  });
}

}  // namespace minfer::cli
