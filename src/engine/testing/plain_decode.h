// The answer to a request by the plainest means: one sequence, one token at a time, no engine. What an engine gives
// must have these bits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/runner.h"
#include "minfer/request.h"

namespace minfer::testing {

// The tiny models of tests/golden, opened anew: "llama", "qwen3", "gemma3", ...
std::unique_ptr<Model> open_golden(const std::string& family);

// Decodes choices of requests on a runner of its own: 1 thread, nothing shared, whole prompts.
class PlainDecoder {
 public:
  PlainDecoder(const Model& model, DType type_k, DType type_v, int32_t n_ctx);
  Response answer(const Request& request);
  Embeddings embed(const EmbedRequest& request);  // of `prompts`

 private:
  struct Scored {
    Choice choice;
    double mean;  // log-probability of what was drawn
  };
  Scored choice(const Request& request, int32_t index, Response& response);
  std::unique_ptr<Runner> runner_;
};

// Where two choices differ, empty when they do not. With `may_be_cut`, `got` may be a beginning of `want`.
std::string difference(const Choice& got, const Choice& want, bool may_be_cut = false);
std::string difference(const std::vector<TokenLogprobs>& got, const std::vector<TokenLogprobs>& want);

}  // namespace minfer::testing
