// many_streams MODEL TEXT...: goes on with many texts at once and prints each piece of each answer as it comes.
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "minfer/engine.h"

namespace {

int fail(const minfer::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

int run(const char* model, const std::vector<const char*>& texts) {
  auto engine = minfer::Engine::open(model, {});
  if (!engine.ok()) return fail(engine.error());
  std::vector<minfer::Stream> streams;
  for (const char* text : texts) {
    minfer::Request request;
    request.text = text;
    request.max_tokens = 16;
    request.sampling.seed = streams.size();
    auto stream = (*engine)->submit(std::move(request));
    if (!stream.ok()) return fail(stream.error());
    streams.push_back(std::move(stream).value());
  }
  for (size_t open = streams.size(); open > 0;) {
    open = 0;
    bool any = false;
    for (size_t i = 0; i < streams.size(); ++i) {
      const auto event = streams[i].poll();
      if (!event.ok()) return fail(event.error());
      if (event->has_value()) {
        std::printf("%zu: %s\n", i, (*event)->text.c_str());
        any = true;
      }
      open += streams[i].done() ? 0 : 1;
    }
    if (!any && open > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const minfer::EngineStats stats = (*engine)->stats();
  std::printf("%lld tokens in %lld steps\n", static_cast<long long>(stats.tokens_generated),
              static_cast<long long>(stats.steps));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 3) return run(argv[1], {argv + 2, argv + argc});
  std::fprintf(stderr, "usage: many_streams MODEL TEXT...\n");
  return 2;
}
