// Flags of an engine; the environment stands in for some (options.h).
#include "serving_flags.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "base/error.h"
#include "options.h"

namespace minfer::cli {
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

void ServingFlags::add_to(CLI::App& app, bool with_cache_type, bool many) {
  constexpr Range kChunk = {1, 4096}, kParallel = {1, 4096}, kDraft = {1, 64};
  place.add_to(app);
  add_integer(app, "--ctx,-c", ctx, kPositive,
              "positions of one sequence at most (default: what the model was trained for, as memory allows)")
      ->group("Engine");
  add_text(app, "--kv-memory", kv_memory,
           "bytes of K and V of all that is kept: 300M, 2G (default: a quarter of the free memory)")
      ->group("Engine");
  add_text(app, "--kv-store", kv_store,
           "a folder that keeps K and V for the next run with this model; changes speed, never the result")
      ->group("Engine");
  if (many) {
    add_real(app, "--max-stall-ms", max_stall_ms,
             "milliseconds that running answers wait for a token at most while prompts are read, 1 to 1000000 "
             "(default: batch no bound, replay 200)",
             false)
        ->group("Engine");
    add_integer(app, "--parallel", parallel, kParallel, "sequences computed together at most (default 64)")
        ->group("Engine");
  }
  add_integer(app, "--chunk", chunk, kChunk, "prompt tokens per step (default 512); changes speed, never the result")
      ->group("Engine");
  add_text(app, "--draft", draft,
           "a smaller model with the same vocabulary that guesses ahead; changes speed, never the result")
      ->group("Engine");
  add_integer(app, "--draft-max", draft_max, kDraft, "tokens it guesses ahead at most (default 8)")->group("Engine");
  add_text(app, "--draft-kv-memory", draft_kv_memory,
           "bytes of its K and V (default: room for as many positions as --kv-memory has)")
      ->group("Engine");
  if (with_cache_type) cache_types.add_to(app);
}

Result<EngineOptions> ServingFlags::options() const {
  EngineOptions o;
  if (!place.device.empty()) o.device = place.device;
  o.isa = place.isa;
  PlanOptions plan = MINFER_TRY(plan_options({o.device, o.isa}));
  o.disabled_passes = std::move(plan.disabled_passes);
  o.forced_kernels = std::move(plan.forced_kernels);
  o.n_threads = place.threads;
  o.ctx = ctx;
  o.chunk = chunk;
  if (parallel > 0) o.max_running = parallel;
  const auto types = MINFER_TRY(cache_types.resolve());
  o.cache_type_k = dtype_info(types.k).name;
  o.cache_type_v = dtype_info(types.v).name;
  if (!std::isnan(max_stall_ms)) {
    if (!(max_stall_ms >= 1 && max_stall_ms <= 1e6f)) {
      return make_error(ErrorCode::kInvalidArgument, "--max-stall-ms: found {}, expected 1 to 1000000", max_stall_ms);
    }
    o.max_stall_ms = static_cast<double>(max_stall_ms);
  }
  o.kv_store = kv_store;
  if (!kv_memory.empty()) o.kv_memory = MINFER_TRY_CTX(parse_bytes(kv_memory), "--kv-memory");
  if (draft.empty() && (draft_max > 0 || !draft_kv_memory.empty())) {
    return make_error(ErrorCode::kInvalidArgument, "{}: expected --draft MODEL too",
                      draft_max > 0 ? "--draft-max" : "--draft-kv-memory");
  }
  if (!draft.empty()) o.draft_model = MINFER_TRY_CTX(resolve_model(draft), "--draft");
  if (draft_max > 0) o.draft_tokens = draft_max;
  if (!draft_kv_memory.empty()) o.draft_kv_memory = MINFER_TRY_CTX(parse_bytes(draft_kv_memory), "--draft-kv-memory");
  return o;
}

}  // namespace minfer::cli
