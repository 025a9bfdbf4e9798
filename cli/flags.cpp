// Flags shared by the commands that run a model.
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "common.h"
#include "options.h"

namespace minfer::cli {
namespace {

Result<DType> cache_dtype(const std::string& name, const char* flag) {
  const auto t = dtype_from_name(name);
  if (t && (*t == DType::kF32 || *t == DType::kF16 || *t == DType::kBF16 || *t == DType::kQ8_0)) return *t;
  return make_error(ErrorCode::kInvalidArgument, "{}: found '{}', expected f32, f16, bf16 or q8_0", flag, name);
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
  InsightFlags::add_to(app);
  if (with_json) app.add_flag("--json", json, "print one JSON object")->group("Insight");
}

Status EngineFlags::check() const {
  MINFER_TRY(options());
  return InsightFlags::check();
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
  o.plan = MINFER_TRY(plan_options(o.backend));
  return o;
}

}  // namespace minfer::cli
