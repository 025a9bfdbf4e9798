#include "engine/testing/small_engine.h"

#include <gtest/gtest.h>

#include "engine/testing/plain_decode.h"

namespace minfer::testing {

EngineOptions small_options() {
  EngineOptions o;
  o.n_threads = 1, o.ctx = 256, o.max_running = 4;
  o.cache_type_k = o.cache_type_v = "f32";
  return o;
}

std::unique_ptr<Engine> engine_of(const EngineOptions& options) {
  auto e = Engine::create(open_golden("llama"), options);
  if (!e.ok()) ADD_FAILURE() << e.error().message;
  return e.ok() ? std::move(e).value() : nullptr;
}

std::vector<int32_t> some_ids(int32_t n, int32_t salt) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < n; ++i) ids.push_back(3 + (i * 7 + salt * 13 + i * i * salt) % 50);
  return ids;
}

Request request_of(std::vector<int32_t> prompt, int32_t max_tokens) {
  Request r;
  r.prompt = std::move(prompt);
  r.max_tokens = max_tokens;
  r.ignore_eos = true;
  r.sampling.temperature = 0;
  return r;
}

Response plain(const Request& r, int32_t n_ctx) {
  const auto model = open_golden("llama");
  return PlainDecoder(*model, DType::kF32, DType::kF32, n_ctx).answer(r);
}

}  // namespace minfer::testing
