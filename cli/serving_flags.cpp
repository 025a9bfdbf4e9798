// Flags of an engine; the environment stands in for some (options.h).
#include "serving_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "base/error.h"
#include "options.h"

namespace minfer::cli {
namespace {

Result<std::string> cache_type_of(const std::string& name, const char* flag) {
  for (const char* known : {"f32", "f16", "bf16", "q8_0"}) {
    if (name == known) return name;
  }
  return make_error(ErrorCode::kInvalidArgument, "{}: found '{}', expected f32, f16, bf16 or q8_0", flag, name);
}

}  // namespace

Result<int64_t> parse_bytes(const std::string& text) {
  constexpr Range kBytes = {1, int64_t{1} << 50};
  std::string digits = text;
  int64_t unit = 1;
  constexpr const char* kUnits = "KMG";
  for (int i = 0; i < 3; ++i) {
    if (digits.empty() || digits.back() != kUnits[i]) continue;
    digits.pop_back();
    unit = int64_t{1} << (10 * (i + 1));
    break;
  }
  const auto n = parse_integer(digits, kBytes);
  if (!n.ok() || *n > kBytes.hi / unit) {
    return make_error(ErrorCode::kInvalidArgument, "found '{}', expected bytes, as 4096, 512K, 300M or 2G", text);
  }
  return *n * unit;
}

void ServingFlags::add_to(CLI::App& app, bool with_cache_type) {
  constexpr Range kChunk = {1, 4096}, kParallel = {1, 4096};
  add_text(app, "--device,--backend", device, "where to run: cpu (default) or ref, the scalar definition")
      ->group("Engine");
  add_isa(app, isa, "force an instruction set: scalar, avx2, avxvnni, avx512, neon")->group("Engine");
  add_integer(app, "--threads,-t", threads, kThreads, "threads (default: the physical cores this process may use)")
      ->group("Engine");
  add_integer(app, "--ctx,-c", ctx, kPositive,
              "positions of one sequence at most (default: what the model was trained for, as memory allows)")
      ->group("Engine");
  add_text(app, "--kv-memory", kv_memory,
           "bytes of K and V of all sequences: 300M, 2G (default: a quarter of the free memory)")
      ->group("Engine");
  add_integer(app, "--parallel", parallel, kParallel, "sequences computed together at most (default 64)")
      ->group("Engine");
  add_integer(app, "--chunk", chunk, kChunk, "prompt tokens per step (default 512); changes speed, never the result")
      ->group("Engine");
  if (!with_cache_type) return;
  add_text(app, "--cache-type", cache_type, "type of the KV cache: f32, f16 (default), bf16, q8_0")->group("Engine");
  add_text(app, "--cache-type-k", cache_type_k, "type of K alone")->group("Engine");
  add_text(app, "--cache-type-v", cache_type_v, "type of V alone")->group("Engine");
}

Result<EngineOptions> ServingFlags::options() const {
  for (const char* name : {"MINFER_DISABLE_PASS", "MINFER_KERNEL"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != 0) {
      return make_error(ErrorCode::kInvalidArgument, "{}: this command does not follow it", name);
    }
  }
  EngineOptions o;
  if (!device.empty()) o.device = device;
  o.isa = isa;
  o.n_threads = threads;
  o.ctx = ctx;
  o.chunk = chunk;
  if (parallel > 0) o.max_running = parallel;
  const std::string both = cache_type.empty() ? "f16" : MINFER_TRY(cache_type_of(cache_type, "--cache-type"));
  o.cache_type_k = cache_type_k.empty() ? both : MINFER_TRY(cache_type_of(cache_type_k, "--cache-type-k"));
  o.cache_type_v = cache_type_v.empty() ? both : MINFER_TRY(cache_type_of(cache_type_v, "--cache-type-v"));
  if (!kv_memory.empty()) o.kv_memory = MINFER_TRY_CTX(parse_bytes(kv_memory), "--kv-memory");
  return o;
}

}  // namespace minfer::cli
