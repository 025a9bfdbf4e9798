// See vocab_from_gguf.h.
#include "tokenizer/vocab_from_gguf.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace minfer {
namespace {

// A token id; absent and 2^32 - 1 (how some writers spell -1) mean none.
Result<TokenId> read_id(const gguf::Metadata& metadata, const char* name) {
  const std::string key = std::string("tokenizer.ggml.") + name;
  if (!metadata.has(key)) return kNoToken;
  const auto id = MINFER_TRY(metadata.get<int64_t>(key));
  if (id == -1 || id == UINT32_MAX) return kNoToken;
  if (id < 0 || id > INT32_MAX) {
    return make_error(ErrorCode::kOutOfRange, "[tokenizer] {}: key '{}': found {}, expected a token id",
                      metadata.source(), key, id);
  }
  return static_cast<TokenId>(id);
}

Result<std::optional<bool>> read_flag(const gguf::Metadata& metadata, const char* name) {
  const std::string key = std::string("tokenizer.ggml.") + name;
  if (!metadata.has(key)) return std::optional<bool>();
  return std::optional<bool>(MINFER_TRY(metadata.get<bool>(key)));
}

// The newer keys, or the older ones without padding, repository and file.
Result<FimTokens> read_fim(const gguf::Metadata& metadata) {
  const auto either = [&](const char* name, const char* old) -> Result<TokenId> {
    const TokenId id = MINFER_TRY(read_id(metadata, name));
    return id != kNoToken || !old ? Result<TokenId>(id) : read_id(metadata, old);
  };
  FimTokens fim;
  fim.prefix = MINFER_TRY(either("fim_pre_token_id", "prefix_token_id"));
  fim.suffix = MINFER_TRY(either("fim_suf_token_id", "suffix_token_id"));
  fim.middle = MINFER_TRY(either("fim_mid_token_id", "middle_token_id"));
  fim.pad = MINFER_TRY(either("fim_pad_token_id", nullptr));
  fim.repo = MINFER_TRY(either("fim_rep_token_id", nullptr));
  fim.file = MINFER_TRY(either("fim_sep_token_id", nullptr));
  return fim;
}

// Phi-3's control tokens swallow white space after them (`rstrip` in its tokenizer.json), its bos and unknown token and
// <|endoftext|> excepted.
void set_phi3_rstrip(VocabData& data) {
  for (size_t i = 0; i < data.tokens.size() && i < data.types.size(); ++i) {
    const std::string_view t = data.tokens[i];
    const bool control = data.types[i] == static_cast<int32_t>(TokenType::kControl) ||
                         data.types[i] == static_cast<int32_t>(TokenType::kUserDefined);
    const bool named = t.size() > 4 && t.substr(0, 2) == "<|" && t.substr(t.size() - 2) == "|>";
    if (control && ((named && t != "<|endoftext|>") || t == "</s>")) {
      data.added.push_back({.id = static_cast<TokenId>(i), .rstrip = true});
    }
  }
}

}  // namespace

Result<VocabData> vocab_from_gguf(const gguf::Metadata& metadata) {
  VocabData data;
  data.model = MINFER_TRY(metadata.get<std::string>("tokenizer.ggml.model"));
  data.pre = MINFER_TRY(metadata.get_or<std::string>("tokenizer.ggml.pre", ""));
  data.tokens = MINFER_TRY(metadata.strings("tokenizer.ggml.tokens"));
  if (metadata.has("tokenizer.ggml.scores")) data.scores = MINFER_TRY(metadata.numbers<float>("tokenizer.ggml.scores"));
  if (metadata.has("tokenizer.ggml.token_type")) {
    data.types = MINFER_TRY(metadata.numbers<int32_t>("tokenizer.ggml.token_type"));
  }
  if (metadata.has("tokenizer.ggml.merges")) data.merges = MINFER_TRY(metadata.strings("tokenizer.ggml.merges"));
  data.bos = MINFER_TRY(read_id(metadata, "bos_token_id"));
  data.eos = MINFER_TRY(read_id(metadata, "eos_token_id"));
  data.eot = MINFER_TRY(read_id(metadata, "eot_token_id"));
  data.unk = MINFER_TRY(read_id(metadata, "unknown_token_id"));
  data.sep = MINFER_TRY(read_id(metadata, "seperator_token_id"));  // spelled so by the format
  data.pad = MINFER_TRY(read_id(metadata, "padding_token_id"));
  data.mask = MINFER_TRY(read_id(metadata, "mask_token_id"));
  if (data.bos == kNoToken && data.model == "bert") data.bos = MINFER_TRY(read_id(metadata, "cls_token_id"));
  data.fim = MINFER_TRY(read_fim(metadata));
  const TokenId eom = MINFER_TRY(read_id(metadata, "eom_token_id"));
  if (eom != kNoToken) data.more_eog.push_back(eom);
  data.add_bos = MINFER_TRY(read_flag(metadata, "add_bos_token"));
  data.add_eos = MINFER_TRY(read_flag(metadata, "add_eos_token"));
  data.add_sep = MINFER_TRY(read_flag(metadata, "add_sep_token"));
  data.add_space_prefix = MINFER_TRY(read_flag(metadata, "add_space_prefix"));
  data.remove_extra_whitespaces = MINFER_TRY(read_flag(metadata, "remove_extra_whitespaces"));
  data.lowercase = MINFER_TRY(read_flag(metadata, "normalizer.lowercase"));
  data.strip_accents = MINFER_TRY(read_flag(metadata, "normalizer.strip_accents"));
  if (metadata.has("tokenizer.ggml.precompiled_charsmap")) {
    for (const int32_t v : MINFER_TRY(metadata.numbers<int32_t>("tokenizer.ggml.precompiled_charsmap"))) {
      data.charsmap.push_back(static_cast<uint8_t>(v));  // written as signed or unsigned bytes
    }
  }
  if (MINFER_TRY(metadata.get_or<std::string>("general.architecture", "")) == "phi3" && data.model == "llama") {
    set_phi3_rstrip(data);
  }
  return data;
}

Result<Tokenizer> tokenizer_from_gguf(const gguf::Metadata& metadata) {
  const VocabData data = MINFER_TRY(vocab_from_gguf(metadata));
  return MINFER_TRY_CTX(Tokenizer::create(data), metadata.source());
}

}  // namespace minfer
