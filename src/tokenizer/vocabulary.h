// Vocabulary: a checked VocabData, with each token's bytes, its text index and its special tokens.
// Layout:  texts and pieces are views into one arena; index = token id.
// Errors:  make() names the fault: the key, the token, what was found and what was expected.
// Threads: read-only after make().
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/rules.h"
#include "tokenizer/text_map.h"
#include "tokenizer/vocab.h"

namespace minfer {

// U+2581: a space in SentencePiece; the beginning of a word in GGUF's WordPiece vocabularies.
inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

struct Vocabulary {
  VocabKind kind = VocabKind::kByteBpe;
  std::vector<std::string_view> texts;   // [n_vocab] as the file spells them
  std::vector<std::string_view> pieces;  // [n_vocab] the bytes they stand for
  std::vector<TokenType> types;          // [n_vocab]
  std::vector<double> scores;            // [n_vocab] for kSpm and kUnigram, else empty
  TextMap index;                         // text -> lowest id with it; empty texts are left out
  std::array<TokenId, 256> byte_tokens;  // the token of one byte (kByteBpe: of its symbol, or unknown), or kNoToken

  TokenId bos = kNoToken, eos = kNoToken, eot = kNoToken, unk = kNoToken, sep = kNoToken, pad = kNoToken,
          mask = kNoToken;
  FimTokens fim;
  std::vector<bool> outside;  // [n_vocab] or empty: tokens that the model's own algorithm does not know
  std::vector<TokenId> eog;   // ascending

  static Result<Vocabulary> make(const VocabData& data, const TextRules& rules);

  // What splitting and merging may give.
  bool usable(TokenId id) const {
    const TokenType t = type(id);
    return t != TokenType::kControl && t != TokenType::kUnknown &&
           (outside.empty() || !outside[static_cast<size_t>(id)]);
  }

  size_t size() const { return texts.size(); }
  TokenType type(TokenId id) const { return types[static_cast<size_t>(id)]; }
  std::string_view piece(TokenId id) const { return pieces[static_cast<size_t>(id)]; }
  std::string_view text(TokenId id) const { return texts[static_cast<size_t>(id)]; }
  TokenId find(std::string_view text) const { return text.empty() ? kNoToken : index.find(text, texts); }

 private:
  void name_specials(const VocabData& data);
  Status make_pieces(const TextRules& rules, char* out);
  std::unique_ptr<char[]> arena_;
};

bool is_special(TokenType type);  // control, unknown or user-defined: never part of ordinary splitting

// The bytes a byte-level token stands for; nullopt if a character of it stands for none.
std::optional<std::string> byte_level_bytes(std::string_view text);

// The UTF-8 spelling that byte-level BPE gives a byte: itself if it is a printable Latin-1 character, else one of
// U+0100.. in order.
std::string_view byte_symbol(unsigned char byte);

}  // namespace minfer
