// Reads a Hugging Face tokenizer.json: models BPE, Unigram and WordPiece with their normalizers, pre-tokenizers, added
// tokens, post-processors and decoders. `truncation` and `padding` are about batches and are not read.
// Errors:  what cannot be followed exactly is refused by its name ([tokenizer.json] normalizer: 'X' is not supported).
// Threads: pure.
// Source:  the serialized form of Hugging Face tokenizers 0.23.
#pragma once

#include <memory>
#include <string_view>

#include "minfer/error.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"

namespace minfer {

// VocabData with the memory that its views point into. Tokenizer::create(data) makes the tokenizer; a converter writes
// the fields.
struct JsonVocab {
  struct Storage;
  std::shared_ptr<const Storage> storage;
  VocabData data;
};

// `config`: the text of tokenizer_config.json beside it, which names bos, eos, unk and pad; empty if there is none.
Result<JsonVocab> vocab_from_json(std::string_view json, std::string_view config = {});

// Both steps.
Result<Tokenizer> tokenizer_from_json(std::string_view json, std::string_view config = {});

}  // namespace minfer
