// Flags of the commands that run an Engine.
#pragma once

#include <limits>
#include <string>

#include "common.h"
#include "minfer/engine.h"

namespace CLI {
class App;
}

namespace minfer::cli {

struct ServingFlags {
  PlaceFlags place;
  CacheTypeFlags cache_types;
  std::string kv_memory, kv_store, draft, draft_kv_memory;
  float max_stall_ms = std::numeric_limits<float>::quiet_NaN();  // NaN: not given
  int ctx = 0, chunk = 0, parallel = 0, draft_max = 0;
  // Without `many`, for a command that computes one sequence at a time, there is no --parallel.
  void add_to(CLI::App& app, bool with_cache_type = true, bool many = true);
  // Errors: what can be wrong about them without a model, with the flag's name.
  Result<EngineOptions> options() const;
};

// "4096", "512K", "300M", "2G": bytes, in powers of 1024.
Result<int64_t> parse_bytes(const std::string& text);

}  // namespace minfer::cli
