// An engine on the tiny llama, and requests for it.
#pragma once

#include <memory>
#include <vector>

#include "minfer/engine.h"

namespace minfer::testing {

EngineOptions small_options();  // 1 thread, 256 positions, 4 at once, f32
std::unique_ptr<Engine> engine_of(const EngineOptions& options);

std::vector<int32_t> some_ids(int32_t n, int32_t salt = 0);           // of the 61 there are
Request request_of(std::vector<int32_t> prompt, int32_t max_tokens);  // greedy, no end tokens
Response plain(const Request& request, int32_t n_ctx = 256);          // by PlainDecoder

}  // namespace minfer::testing
