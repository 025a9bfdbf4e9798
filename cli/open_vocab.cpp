// Opening a vocabulary by path or cached name.
#include "open_vocab.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "common.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocab_from_gguf.h"

namespace minfer::cli {

Result<VocabFile> open_vocab(const std::string& model) {
  gguf::File file = MINFER_TRY(of_file(gguf::File::open(MINFER_TRY(resolve_model(model)))));
  const VocabData data = MINFER_TRY(vocab_from_gguf(file.metadata()));
  Tokenizer tokenizer = MINFER_TRY_CTX(Tokenizer::create(data), file.path());
  return VocabFile{std::move(file), std::move(tokenizer)};
}

Result<Tokenizer> open_tokenizer(const std::string& model) {
  if (!model.ends_with(".json")) {
    VocabFile v = MINFER_TRY(open_vocab(model));
    return std::move(v.tokenizer);
  }
  // The largest in use have 35 MB; what they hold is checked before it is used.
  constexpr size_t kMaxJsonBytes = size_t{512} << 20;
  const std::string json = MINFER_TRY(of_file(read_regular_file(model, kMaxJsonBytes)));
  const auto config_path = std::filesystem::path(model).parent_path() / "tokenizer_config.json";
  std::string config;
  std::error_code none;
  if (std::filesystem::exists(config_path, none)) {
    config = MINFER_TRY(of_file(read_regular_file(config_path.string(), kMaxJsonBytes)));
  }
  return MINFER_TRY_CTX(tokenizer_from_json(json, config), model);
}

}  // namespace minfer::cli
