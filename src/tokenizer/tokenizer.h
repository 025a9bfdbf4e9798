// Tokenizer: text to token ids and back, for BPE, SentencePiece (BPE and unigram) and WordPiece vocabularies.
// Any bytes are valid input. Bytes that are not UTF-8 pass through as bytes: byte-level BPE encodes them as the byte
// symbols, SentencePiece as its <0xNN> tokens; decode(encode(x)) gives x back as far as the vocabulary's normalizer
// leaves x alone (Qwen's, say, gives NFC(x); WordPiece and unigram vocabularies lose more: docs/tokenizers.md).
// Errors:  a faulty vocabulary is refused by create(); encode fails when the vocabulary lacks a token for a character
//          and has no unknown token, and on a text with which a pattern of tokenizer.json would take quadratic time;
//          decode fails on an id outside the vocabulary.
// Threads: all const methods may be called from any number of threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/vocab.h"

namespace minfer {

struct EncodeOptions {
  bool add_special = true;     // put bos before and eos after, where the vocabulary asks for it
  bool parse_special = false;  // text that spells a control token becomes that token
};

// A part of a rendered prompt: the template's own text (markup), in which control tokens are parsed, or text that came
// from a message, in which they are not. The parts are tokenized as one string otherwise: words may span parts.
struct TextSegment {
  std::string_view text;
  bool is_markup = false;
};

struct DecodeOptions {
  bool show_control = false;       // control tokens appear as their text; else they are left out
  bool strip_space_prefix = true;  // drop the one space that encode() put before the text (add_space_prefix)
};

class Tokenizer {
 public:
  static Result<Tokenizer> create(const VocabData& data);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options = {}) const;
  // As encode(), control tokens parsed in the markup parts only.
  Result<std::vector<TokenId>> encode_segments(std::span<const TextSegment> segments, bool add_special = false) const;

  // The bytes of the ids' pieces joined; may end in the middle of a character (see stream_decode.h).
  Result<std::string> decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  size_t n_vocab() const;
  bool valid(TokenId id) const;
  // Requires of the next four: valid(id).
  std::string_view piece(
      TokenId id) const;  // the bytes it stands for: " the", "\n", half an emoji; a control token's text
  std::string_view text(TokenId id) const;  // as the vocabulary spells it: "Ġthe", "▁the", "<0x0A>", "<|im_end|>"
  TokenType type(TokenId id) const;
  bool is_control(TokenId id) const;  // control and unknown tokens: hidden in decoded text

  // Exact lookup by vocabulary spelling, control tokens included; nullopt if there is none.
  std::optional<TokenId> find(std::string_view text) const;

  TokenId bos() const;  // kNoToken if the vocabulary has none; likewise below
  TokenId eos() const;
  TokenId eot() const;
  TokenId unk() const;
  TokenId sep() const;
  TokenId pad() const;
  TokenId mask() const;
  const FimTokens& fim() const;  // named by the file, or known by their text
  bool add_bos() const;
  bool add_eos() const;
  bool add_space_prefix() const;

  // End of generation: eos, eot, and tokens known by name (<|im_end|>, <|eot_id|>, <end_of_turn>, <|end|>, ...).
  bool is_eog(TokenId id) const;
  std::span<const TokenId> eog() const;  // ascending

  const std::string& model() const;  // "gpt2", "llama", ...; of a tokenizer.json: "BPE", "Unigram", "WordPiece"
  const std::string& pre() const;    // "smollm", ...; "default" when the file names none; empty if not "gpt2"

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace minfer
