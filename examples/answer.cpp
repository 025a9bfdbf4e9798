// answer MODEL TEXT: goes on with a text, and says how likely each token was.
#include <cstdio>

#include "minfer/engine.h"

namespace {

int run(const char* model, const char* text) {
  auto engine = minfer::Engine::open(model, {});
  if (!engine.ok()) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  minfer::Request request;
  request.text = text;
  request.max_tokens = 16;
  request.sampling.temperature = 0;
  request.logprobs = true;
  const auto response = (*engine)->run(std::move(request));
  if (!response.ok()) {
    std::fprintf(stderr, "%s\n", response.error().message.c_str());
    return 1;
  }
  const minfer::Choice& choice = response->choices[0];
  std::printf("%s\n", choice.text.c_str());
  for (size_t i = 0; i < choice.ids.size(); ++i) {
    std::printf("token %d: log-probability %.4f\n", choice.ids[i], static_cast<double>(choice.logprobs[i].logprob));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return run(argv[1], argv[2]);
  std::fprintf(stderr, "usage: answer MODEL TEXT\n");
  return 2;
}
