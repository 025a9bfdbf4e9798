// Finding and loading models.
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "common.h"

namespace minfer::cli {
namespace fs = std::filesystem;
namespace {

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

}  // namespace

std::string cache_folder() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == 0) {
    const passwd* user = getpwuid(geteuid());  // one thread as yet
    home = user != nullptr && user->pw_dir != nullptr && *user->pw_dir != 0 ? user->pw_dir : ".";
  }
  return std::string(home) + "/.cache/minfer";
}

std::string models_folder() {
  const char* dir = std::getenv("MINFER_MODELS");
  return dir != nullptr && *dir != 0 ? dir : cache_folder() + "/models";
}

Result<std::vector<CachedModel>> cached_models() {
  const std::string folder = models_folder();
  std::vector<CachedModel> models;
  std::error_code ec;
  fs::directory_iterator it(folder, ec);
  for (; !ec && it != fs::directory_iterator(); it.increment(ec)) {
    std::error_code file_ec;
    if (it->path().extension() != ".gguf" || !it->is_regular_file(file_ec)) continue;
    const uint64_t bytes = it->file_size(file_ec);
    if (!file_ec) models.push_back({it->path().stem().string(), it->path().string(), bytes});
  }
  if (ec && ec != std::errc::no_such_file_or_directory) {
    return make_error(ErrorCode::kIo, "models folder '{}': cannot read: {}", folder, ec.message());
  }
  std::sort(models.begin(), models.end(), [](const CachedModel& a, const CachedModel& b) { return a.name < b.name; });
  return models;
}

Result<std::string> resolve_model(const std::string& name) {
  std::error_code ec;
  const fs::file_status status = fs::status(name, ec);
  const bool there = fs::exists(status);
  if (there && !fs::is_directory(status)) {
    if (fs::is_regular_file(status)) return name;
    return make_error(ErrorCode::kIo, "model '{}' is not a regular file", name);
  }
  // A folder that happens to have the name of a cached model does not hide it.
  const auto cached = cached_models();
  if (there && !cached.ok()) return make_error(ErrorCode::kIo, "model '{}' is a folder, expected a GGUF file", name);
  const auto models = MINFER_TRY(cached);
  std::vector<const CachedModel*> exact, begin;
  std::string all;
  const std::string want = lower(name);
  for (const auto& m : models) {
    const std::string stem = lower(m.name);
    all += "\n  " + m.name;
    if (stem == want || stem + ".gguf" == want) exact.push_back(&m);
    if (!want.empty() && stem.rfind(want, 0) == 0) begin.push_back(&m);
  }
  if (exact.empty() && begin.size() == 1) exact = begin;
  if (exact.size() == 1) return exact[0]->path;
  const auto& several = exact.empty() ? begin : exact;
  if (!several.empty()) {
    std::string names;
    for (const auto* m : several) names += "\n  " + m->name;
    return make_error(ErrorCode::kOutOfRange, "model '{}': more than one cached model {}:{}", name,
                      exact.empty() ? "begins so" : "has that name", names);
  }
  if (there) return make_error(ErrorCode::kIo, "model '{}' is a folder, expected a GGUF file", name);
  return make_error(ErrorCode::kNotFound, "model '{}': no such file, and no cached model of that name in {}{}", name,
                    models_folder(), all.empty() ? " (which holds none)" : ":" + all);
}

Result<std::unique_ptr<Model>> open_model(const std::string& name) {
  return of_file(Model::open(MINFER_TRY(resolve_model(name))));
}

Result<Loaded> load(const std::string& name, const EngineFlags& flags, int32_t n_seqs) {
  MINFER_TRY(flags.check());
  return load(MINFER_TRY(open_model(name)), flags, n_seqs);
}

Result<Loaded> load(std::unique_ptr<Model> model, const EngineFlags& flags, int32_t n_seqs) {
  Loaded out;
  out.model = std::move(model);
  MINFER_TRY(flags.check());
  RunnerOptions options = MINFER_TRY(flags.options());
  options.n_seqs = n_seqs;
  {
    Progress bar("loading " + for_terminal(out.model->name()), "B");
    options.progress = [&](int64_t done, int64_t total) {
      bar.update(done, total);
      return !interrupted();
    };
    out.runner = MINFER_TRY(Runner::create(*out.model, options));
  }
  out.insight = MINFER_TRY(Insight::open(flags));
  out.runner->hooks = out.insight->hooks();
  MINFER_TRY(out.insight->write_graph(*out.runner));
  return out;
}

}  // namespace minfer::cli
