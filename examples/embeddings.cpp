// embeddings MODEL TEXT...: how near each text is to the first one, as the cosine of their embeddings.
#include <cstdio>

#include "minfer/engine.h"

namespace {

int run(const char* model, std::vector<std::string> texts) {
  auto engine = minfer::Engine::open(model, {});
  if (!engine.ok()) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  minfer::EmbedRequest request;
  request.texts = texts;
  const auto embeddings = (*engine)->embed(std::move(request));
  if (!embeddings.ok()) {
    std::fprintf(stderr, "%s\n", embeddings.error().message.c_str());
    return 1;
  }
  const auto& rows = embeddings->rows;  // of length 1 each, so that products are cosines
  for (size_t i = 0; i < rows.size(); ++i) {
    double cosine = 0;
    for (size_t k = 0; k < rows[i].size(); ++k) cosine += double{rows[0][k]} * double{rows[i][k]};
    std::printf("%.4f %s\n", cosine, texts[i].c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 3) return run(argv[1], {argv + 2, argv + argc});
  std::fprintf(stderr, "usage: embeddings MODEL TEXT...\n");
  return 2;
}
