// VocabData: what a model file says about its vocabulary, before anything is built from it.
// A loader (vocab_from_gguf.h, tokenizer_json.h, or a test) fills it; Tokenizer::create checks it and copies what it
// keeps.
// Layout:  index i of `tokens`, `scores` and `types` is token id i. Views must live until create() returns.
// Source:  the tokenizer.ggml.* keys of the GGUF specification.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

// How the text around an added token is treated, where it is not the plain way.
struct AddedToken {
  TokenId id = kNoToken;
  bool lstrip = false, rstrip = false;  // it swallows the white space before, after it
  bool single_word = false;             // found only where no word character touches it
  bool normalized = false;              // its text is normalized and looked for in the normalized text
  bool outside = false;                 // no part of the model's own vocabulary: only ever found whole
};

// Tokens for filling in the middle; kNoToken where there is none.
struct FimTokens {
  TokenId prefix = kNoToken, suffix = kNoToken, middle = kNoToken, pad = kNoToken, repo = kNoToken, file = kNoToken;
};

struct TextRules;  // rules.h

struct VocabData {
  // tokenizer.ggml.model: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE), "gemma4" (BPE of characters), "t5"
  // (SentencePiece unigram), "bert" (WordPiece)
  std::string model;
  std::string pre;  // tokenizer.ggml.pre: "smollm", "llama-bpe", ...; empty = "default" (gpt2 only)

  std::vector<std::string_view>
      tokens;                  // [n_vocab] text as the file spells it (byte-mapped for gpt2, U+2581 for llama)
  std::vector<float> scores;   // [n_vocab]; ranks merges of "llama", likelihoods of "t5"; empty = all alike
  std::vector<int32_t> types;  // [n_vocab] TokenType values; empty = all normal
  std::vector<std::string_view> merges;  // [n_merges] "left right", best first; needed by "gpt2"
  std::vector<std::pair<std::string_view, std::string_view>> merge_pairs;  // the same, in parts: instead of `merges`

  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId eot = kNoToken;
  TokenId unk = kNoToken;
  TokenId sep = kNoToken;
  TokenId pad = kNoToken;
  TokenId mask = kNoToken;
  FimTokens fim;
  std::vector<TokenId> more_eog;  // further tokens the file names as ends of generation

  std::optional<bool> add_bos;                   // absent: the default of the model kind / pre-tokenizer
  std::optional<bool> add_eos;                   // absent: true for "t5", else false
  std::optional<bool> add_sep;                   // absent: true for "bert" and some pre-tokenizers
  std::optional<bool> add_space_prefix;          // absent: true for "llama" and "t5", else false
  std::optional<bool> remove_extra_whitespaces;  // "t5"; absent: false
  std::vector<uint8_t> charsmap;                 // "t5": SentencePiece's table of replacements; empty: none
  std::optional<bool> lowercase, strip_accents;  // "bert"; absent: true, and as lowercase

  std::vector<AddedToken> added;  // GGUF has no key for these; the loader knows some by architecture
  // Everything about the text that GGUF's keys do not say (tokenizer.json); absent: from the fields above.
  std::shared_ptr<const TextRules> rules;
  // tokenizer.json's scores have 64 bits.
  std::vector<double> exact_scores;
};

}  // namespace minfer
