// Flags of the commands that run many requests through an Engine.
#pragma once

#include <string>

#include "minfer/engine.h"

namespace CLI {
class App;
}

namespace minfer::cli {

struct ServingFlags {
  std::string device, isa, cache_type, cache_type_k, cache_type_v, kv_memory;
  int threads = 0, ctx = 0, chunk = 0, parallel = 0;
  void add_to(CLI::App& app, bool with_cache_type = true);
  // Errors: what can be wrong about them without a model, with the flag's name.
  Result<EngineOptions> options() const;
};

// "4096", "512K", "300M", "2G": bytes, in powers of 1024.
Result<int64_t> parse_bytes(const std::string& text);

}  // namespace minfer::cli
