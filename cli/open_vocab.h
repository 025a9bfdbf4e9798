// The vocabulary of a model file without its weights: enough for text <-> ids and templates, also where a file holds
// nothing else.
// Errors:  what the GGUF reader and the tokenizer say, with the file's name.
#pragma once

#include <string>

#include "gguf/reader.h"
#include "tokenizer/tokenizer.h"

namespace minfer::cli {

struct VocabFile {
  gguf::File file;
  Tokenizer tokenizer;
};

Result<VocabFile> open_vocab(const std::string& model);  // a path or a cached name

// The tokenizer alone: also of a tokenizer.json (a path that ends in .json), with the tokenizer_config.json beside it.
Result<Tokenizer> open_tokenizer(const std::string& model);

}  // namespace minfer::cli
