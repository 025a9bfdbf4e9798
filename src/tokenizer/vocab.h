// VocabData: what a model file says about its vocabulary, before anything is built from it.
// A loader (vocab_from_gguf.h, or a test) fills it; Tokenizer::create checks it and copies what it keeps.
// Layout:  index i of `tokens`, `scores` and `types` is token id i. Views must live until create() returns.
// Source:  the tokenizer.ggml.* keys of the GGUF specification.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minfer {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

// The numbers are those of tokenizer.ggml.token_type (and of SentencePiece's ModelProto).
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // never produced from ordinary text; hidden in decoded text unless asked for
  kUserDefined = 4,  // matched whole, before any splitting, wherever its text stands
  kUnused = 5,
  kByte = 6,  // "<0x0A>": one byte of fallback (SentencePiece)
};

struct VocabData {
  std::string model;  // tokenizer.ggml.model: "gpt2" (byte-level BPE) or "llama" (SentencePiece BPE)
  std::string pre;    // tokenizer.ggml.pre: "smollm", "llama-bpe", ...; empty = "default" (gpt2 only)

  std::vector<std::string_view>
      tokens;                  // [n_vocab] text as the file spells it (byte-mapped for gpt2, U+2581 for llama)
  std::vector<float> scores;   // [n_vocab]; ranks merges of "llama"; empty = all alike
  std::vector<int32_t> types;  // [n_vocab] TokenType values; empty = all normal
  std::vector<std::string_view> merges;  // [n_merges] "left right", best first; needed by "gpt2"

  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId eot = kNoToken;
  TokenId unk = kNoToken;
  TokenId sep = kNoToken;
  TokenId pad = kNoToken;
  std::vector<TokenId> more_eog;  // further tokens the file names as ends of generation

  std::optional<bool> add_bos;           // absent: the default of the model kind / pre-tokenizer
  std::optional<bool> add_eos;           // absent: false
  std::optional<bool> add_space_prefix;  // absent: true for "llama", false for "gpt2"
  // Control tokens that swallow the white space after them when they are parsed (Phi-3's do in Hugging Face). GGUF has
  // no key for it; the loader knows it by architecture.
  std::vector<TokenId> rstrip;
};

}  // namespace minfer
