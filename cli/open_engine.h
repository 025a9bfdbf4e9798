// An engine for a command: opened with a progress bar and the hooks of its flags.
#pragma once

#include <memory>

#include "insight.h"
#include "minfer/engine.h"
#include "model/model.h"

namespace minfer::cli {

struct OpenedEngine {
  std::unique_ptr<Insight> insight;
  std::unique_ptr<Engine> engine;
  // Closes the engine, then writes what the hooks saw.
  Status finish();
};
// Errors: those of Engine::create() and of the files that the flags name; kCancelled on Ctrl-C.
Result<OpenedEngine> open_engine(std::unique_ptr<Model> model, EngineOptions options, const InsightFlags& flags);

}  // namespace minfer::cli
