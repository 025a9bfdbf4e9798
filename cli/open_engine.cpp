#include "open_engine.h"

#include "base/error.h"
#include "common.h"

namespace minfer::cli {

Result<OpenedEngine> open_engine(std::unique_ptr<Model> model, EngineOptions options, const InsightFlags& flags) {
  OpenedEngine out;
  out.insight = MINFER_TRY(Insight::open(flags));
  out.insight->hook_into(options);
  {
    Progress bar("loading " + for_terminal(model->name()), "B");
    options.progress = [&](int64_t done, int64_t total) {
      bar.update(done, total);
      return !interrupted();
    };
    out.engine = MINFER_TRY(Engine::create(std::move(model), options));
  }
  MINFER_TRY(out.insight->write_graph(*out.engine));
  return out;
}

Status OpenedEngine::finish() {
  engine.reset();
  return insight->finish();
}

}  // namespace minfer::cli
