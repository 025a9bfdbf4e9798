// Where the outside cases are and how to read them (tests only).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/reader.h"
#include "tokenizer/tokenizer.h"

namespace minfer::testing {

// $MINFER_CASES, or ../shared/cases beside the source tree.
std::string cases_dir();
bool file_exists(const std::string& path);
std::string read_file(const std::string& path);  // empty if it cannot be read
// What `xz -dc path` writes; empty if there is no xz.
std::string read_xz(const std::string& path);

// The texts and ids of a ggml-vocab-*.gguf.inp/.out pair.
struct VectorCase {
  std::string text;
  std::vector<TokenId> ids;
};
std::vector<VectorCase> read_vectors(const std::string& path_without_ending);

Result<Tokenizer> load_gguf_tokenizer(const std::string& path);

// A vocabulary with the memory its views point into.
struct OwnedVocab {
  VocabData data;
  std::vector<std::string> strings;
  // Fills data.tokens and data.merges from `strings` = tokens, then merges.
  void link(size_t n_tokens);
};

std::vector<uint8_t> base64_bytes(std::string_view text);

// A SentencePiece .model file.
OwnedVocab vocab_from_spm_model(std::string_view bytes);

}  // namespace minfer::testing
