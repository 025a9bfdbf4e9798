// One small JSON file: {"<path of the first part>": {"parts": [[path, bytes, mtime in ns]], "sha256": "..."}}.
#include "model_hash.h"

#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/file_hash.h"
#include "common.h"

namespace minfer::cli {
namespace {

namespace fs = std::filesystem;

std::string hash_file() { return cache_folder() + "/model-sha256.json"; }

nlohmann::json read_all() {
  constexpr size_t kMaxBytes = size_t{16} << 20;
  const auto text = read_regular_file(hash_file(), kMaxBytes);
  auto j = text.ok() && text->find('\0') == text->npos ? nlohmann::json::parse(*text, nullptr, false)
                                                       : nlohmann::json::object();
  return j.is_object() ? j : nlohmann::json::object();  // a damaged cache file is made anew
}

// [[path, bytes, mtime]]; null: a part is not there.
nlohmann::json describe(const std::vector<std::string>& parts) {
  auto list = nlohmann::json::array();
  for (const auto& path : parts) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return nullptr;
    constexpr int64_t kNs = 1'000'000'000;
    list.push_back({path, static_cast<int64_t>(st.st_size), st.st_mtim.tv_sec * kNs + st.st_mtim.tv_nsec});
  }
  return list;
}

std::vector<std::string> paths_of(const nlohmann::json& parts) {
  std::vector<std::string> paths;
  for (const auto& p : parts) {
    if (!p.is_array() || p.size() != 3 || !p[0].is_string()) return {};
    paths.push_back(p[0].get<std::string>());
  }
  return paths;
}

// Whether an entry of the cache file is whole and its model's files are as they were.
bool holds(const nlohmann::json& entry) {
  if (!entry.is_object() || !entry.contains("sha256") || !entry["sha256"].is_string() || !entry.contains("parts") ||
      !entry["parts"].is_array())
    return false;
  const auto paths = paths_of(entry["parts"]);
  return !paths.empty() && describe(paths) == entry["parts"];
}

}  // namespace

Result<std::string> model_sha256(const gguf::File& file) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < file.n_parts(); ++i) {
    std::error_code ec;
    const fs::path path = fs::canonical(file.part_path(i), ec);
    if (ec) return make_error(ErrorCode::kIo, "'{}': {}", file.part_path(i), ec.message());
    paths.push_back(path.string());
  }
  auto all = read_all();
  const auto it = all.find(paths[0]);
  if (it != all.end() && holds(*it) && paths_of((*it)["parts"]) == paths) return (*it)["sha256"].get<std::string>();

  const auto parts = describe(paths);
  Progress bar("hashing the model", "B");
  const std::string hash = MINFER_TRY(sha256_files(paths, [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !interrupted();
  }));
  if (parts.is_null() || describe(paths) != parts) return hash;  // it changes as we look: nothing to keep
  for (auto entry = all.begin(); entry != all.end();) entry = holds(*entry) ? std::next(entry) : all.erase(entry);
  all[paths[0]] = {{"parts", parts}, {"sha256", hash}};
  std::error_code ec;
  fs::create_directories(cache_folder(), ec);
  // A cache that cannot be written costs time, nothing else.
  static_cast<void>(
      replace_file(hash_file(), all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", 0644));
  return hash;
}

std::optional<std::string> model_with_sha256(const std::string& sha256) {
  const auto all = read_all();
  for (const auto& [path, entry] : all.items()) {
    if (holds(entry) && entry["sha256"] == sha256) return path;
  }
  return std::nullopt;
}

}  // namespace minfer::cli
