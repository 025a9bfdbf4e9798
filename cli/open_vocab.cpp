// Opening a vocabulary by path or cached name.
#include "open_vocab.h"

#include "base/error.h"
#include "common.h"
#include "tokenizer/vocab_from_gguf.h"

namespace minfer::cli {

Result<VocabFile> open_vocab(const std::string& model) {
  gguf::File file = MINFER_TRY(of_file(gguf::File::open(MINFER_TRY(resolve_model(model)))));
  const VocabData data = MINFER_TRY(vocab_from_gguf(file.metadata()));
  Tokenizer tokenizer = MINFER_TRY_CTX(Tokenizer::create(data), file.path());
  return VocabFile{std::move(file), std::move(tokenizer)};
}

}  // namespace minfer::cli
