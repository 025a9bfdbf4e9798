// Reads the tokenizer.ggml.* keys of a GGUF file.
// Errors:  a missing or ill-typed key (the file, the key, what was found, what was expected). What the values mean is
//          checked by Tokenizer::create.
// Threads: pure.
#pragma once

#include "gguf/metadata.h"
#include "minfer/error.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"

namespace minfer {

// The views in the result live as long as the file that `metadata` belongs to.
Result<VocabData> vocab_from_gguf(const gguf::Metadata& metadata);

// Both steps; the tokenizer does not need the file afterwards.
Result<Tokenizer> tokenizer_from_gguf(const gguf::Metadata& metadata);

}  // namespace minfer
