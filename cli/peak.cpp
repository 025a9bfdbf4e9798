// One small JSON file: {"<host> <isa> <threads>": {...}}.
#include "peak.h"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "backend/backend.h"
#include "base/error.h"
#include "base/file.h"
#include "common.h"

namespace minfer::cli {
namespace {

std::string key(int n_threads, std::string isa) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  if (isa.empty()) isa = available_isas().front();
  return std::string(host) + " " + isa + " " + std::to_string(n_threads);
}

nlohmann::json read_all() {
  constexpr size_t kMaxBytes = size_t{16} << 20;
  const auto text = read_regular_file(peak_file(), kMaxBytes);
  auto j = text.ok() && text->find('\0') == text->npos ? nlohmann::json::parse(*text, nullptr, false)
                                                       : nlohmann::json::object();
  return j.is_object() ? j : nlohmann::json::object();  // a damaged cache file is measured anew
}

}  // namespace

std::string peak_file() { return cache_folder() + "/peak.json"; }

std::optional<cpu::Peak> cached_peak(int n_threads, const std::string& isa) {
  const auto all = read_all();
  const auto it = all.find(key(n_threads, isa));
  if (it == all.end() || !it->is_object()) return std::nullopt;
  const auto number = [&](const char* name) {
    const auto v = it->find(name);
    return v != it->end() && v->is_number() ? v->get<double>() : 0.0;
  };
  const cpu::Peak p = {number("read_gb_per_s"), number("f32_gflop_per_s"), number("int8_gop_per_s")};
  if (!(p.read_gb_per_s > 0) || !(p.f32_gflop_per_s > 0) || !(p.int8_gop_per_s > 0)) return std::nullopt;
  return p;
}

Status store_peak(int n_threads, const std::string& isa, const cpu::Peak& p) {
  auto all = read_all();
  all[key(n_threads, isa)] = {
      {"read_gb_per_s", p.read_gb_per_s}, {"f32_gflop_per_s", p.f32_gflop_per_s}, {"int8_gop_per_s", p.int8_gop_per_s}};
  std::error_code ec;
  std::filesystem::create_directories(std::filesystem::path(peak_file()).parent_path(), ec);
  return replace_file(peak_file(), all.dump(2) + "\n", 0644);
}

}  // namespace minfer::cli
