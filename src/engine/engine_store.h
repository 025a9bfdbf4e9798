// What is kept of an engine's cache on disk, and under which name.
// Threads: pure functions.
#pragma once

#include <string>

#include "engine/runner.h"
#include "kv/page_store.h"
#include "minfer/engine.h"

namespace minfer {

// SHA-256 of a model's file, or of all parts of a split one, in hex. Reads all of it.
// Errors: kUnsupported for a model that is in no file; what the system says.
Result<std::string> model_sha256(const Model& model);

// What decides the bytes of a page: model, numerics version, cache types and sizes, in words. Devices and instruction
// sets give the same bits (docs/numerics.md), so they are not part of it.
// `sha256`: of the model's file, where it is known; empty: it is read.
Result<std::string> cache_identity(const Model& model, const Runner& runner, const std::string& sha256);

// The store of options.kv_store for this model on this runner.
Result<PageStore> open_page_store(const Model& model, const Runner& runner, const EngineOptions& options);

}  // namespace minfer
