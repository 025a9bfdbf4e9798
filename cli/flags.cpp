// Flags shared by the commands that run a model.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "base/error.h"
#include "common.h"

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

// The parser alone would take "-1" as 2^64 - 1 and cut what is larger.
std::string is_seed(const std::string& text) {
  uint64_t v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  const bool ok = r.ec == std::errc{} && r.ptr == text.data() + text.size();
  return ok ? "" : "found '" + text + "', expected 0 to 18446744073709551615";
}

}  // namespace

void EngineFlags::add_to(CLI::App& app, bool with_json) {
  app.add_option("--device,--backend", device, "where to run: cpu (default) or ref, the scalar definition")->group("Engine");
  app.add_option("--isa", isa, "force an instruction set: scalar, avx2, avx512, neon")->envname("MINFER_ISA")->group("Engine");
  app.add_option("--threads,-t", threads, "threads (default: the physical cores this process may use)")->envname("MINFER_THREADS")->group("Engine");
  app.add_option("--ctx,-c", ctx, "positions of context (default: what the model was trained for, as memory allows)")->group("Engine");
  app.add_option("--chunk", chunk, "tokens per prefill step (default 512); changes speed, never the result")->group("Engine");
  app.add_option("--cache-type", cache_type, "type of the KV cache: f32, f16 (default), bf16, q8_0")->envname("MINFER_CACHE_TYPE")->group("Engine");
  app.add_option("--cache-type-k", cache_type_k, "type of K alone")->group("Engine");
  app.add_option("--cache-type-v", cache_type_v, "type of V alone")->group("Engine");
  app.add_flag("--stats", stats, "print timings and memory to stderr")->group("Insight");
  app.add_option("--trace", trace, "write a Chrome trace to this file and print the op histogram")->envname("MINFER_TRACE")->group("Insight");
  app.add_option("--dump-dir", dump_dir, "save every tensor of every step as .npy in this folder")->envname("MINFER_DUMP_DIR")->group("Insight");
  app.add_option("--dump-graph", dump_graph, "write the decode graph as Graphviz to this file")->group("Insight");
  if (with_json) app.add_flag("--json", json, "print one JSON object")->group("Insight");
}

Result<RunnerOptions> EngineFlags::options() const {
  RunnerOptions o;
  if (!device.empty()) o.backend.device = device;
  o.backend.isa = isa;
  o.n_threads = threads;
  o.n_ctx = ctx;
  o.chunk = chunk;
  const std::string both = cache_type.empty() ? "f16" : cache_type;
  o.type_k = MINFER_TRY(cache_dtype(cache_type_k.empty() ? both : cache_type_k, "--cache-type"));
  o.type_v = MINFER_TRY(cache_dtype(cache_type_v.empty() ? both : cache_type_v, "--cache-type"));
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

void SamplingFlags::add_to(CLI::App& app) {
  app.add_option("--temp", params.temperature, "temperature; 0 = greedy")->capture_default_str()->group("Sampling");
  app.add_option("--top-k", params.top_k, "keep the k likeliest tokens; 0 = all")->capture_default_str()->group("Sampling");
  app.add_option("--top-p", params.top_p, "keep the likeliest tokens that hold this much probability; 1 = all")->capture_default_str()->group("Sampling");
  app.add_option("--min-p", params.min_p, "drop tokens below this fraction of the likeliest; 0 = none")->capture_default_str()->group("Sampling");
  app.add_option("--typical-p", params.typical_p, "locally typical sampling; 1 = off")->capture_default_str()->group("Sampling");
  app.add_option("--repeat-penalty", params.repeat_penalty, "penalty on recent tokens; 1 = off")->capture_default_str()->group("Sampling");
  app.add_option("--repeat-last-n", params.repeat_last_n, "how many recent tokens the penalties see; -1 = all")->capture_default_str()->group("Sampling");
  app.add_option("--frequency-penalty", params.frequency_penalty, "penalty per occurrence; 0 = off")->capture_default_str()->group("Sampling");
  app.add_option("--presence-penalty", params.presence_penalty, "penalty for having occurred; 0 = off")->capture_default_str()->group("Sampling");
  app.add_option("--logit-bias", logit_bias, "ID=VALUE added to a token's logit (-inf forbids it); may be repeated")->group("Sampling");
  app.add_option("--seed", seed, "seed of the random numbers (default: a fresh one)")->check(is_seed)->group("Sampling");
}

Result<SamplingParams> SamplingFlags::resolve() const {
  SamplingParams p = params;
  for (const auto& item : logit_bias) {
    const size_t eq = item.find('=');
    char* end = nullptr;
    char* end_value = nullptr;
    errno = 0;
    const long id = std::strtol(item.c_str(), &end, 10);
    const float value = eq == std::string::npos ? 0 : std::strtof(item.c_str() + eq + 1, &end_value);
    if (eq == std::string::npos || eq == 0 || end != item.c_str() + eq || eq + 1 == item.size() || *end_value != 0 || errno == ERANGE || id < 0 || id > INT32_MAX) {
      return make_error(ErrorCode::kInvalidArgument, "--logit-bias: found '{}', expected ID=VALUE", item);
    }
    p.logit_bias.emplace_back(static_cast<int32_t>(id), value);
  }
  p.seed = seed ? *seed : (uint64_t{std::random_device{}()} << 32 | std::random_device{}());
  MINFER_TRY(check_sampling(p));
  return p;
}

}  // namespace minfer::cli
