// TextRules: everything that turns a text into pieces for the vocabulary, and what stands around the result.
// They come from the GGUF keys (rules.cpp) or from a tokenizer.json (tokenizer_json.h).
// Threads: read-only once made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/normalize.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/vocab.h"

namespace minfer {

enum class VocabKind : uint8_t {
  kByteBpe,    // merges by rank, starting from byte symbols
  kCharBpe,    // merges by rank, starting from characters, bytes where there is no token
  kSpm,        // merges by the score of their result (SentencePiece)
  kUnigram,    // the most likely way to cut (SentencePiece)
  kWordPiece,  // the longest token first, from the left
};

// One step between the normalized text and the pieces.
struct PreStep {
  enum class Kind : uint8_t {
    kSplit,
    kSpacePrefix,  // every piece that does not begin with a space gets one
    kMetaspace,    // spaces become `mark`; a piece may get one before it; cut before each
  };
  enum class Prefix : uint8_t { kNever, kFirst, kAlways };  // kFirst: only the piece at the very start of the text

  Kind kind = Kind::kSplit;
  SplitStep split;                  // kSplit
  std::string mark;                 // kMetaspace
  Prefix prefix = Prefix::kAlways;  // kMetaspace
  bool cut = true;                  // kMetaspace
};

struct TextRules {
  VocabKind kind = VocabKind::kByteBpe;
  std::vector<Normalizer> normalize;
  std::vector<PreStep> steps;

  bool ignore_merges = false;   // BPE: a piece that is a token as a whole is that token
  bool fuse_unk = true;         // kCharBpe: unknown characters in a row are one unknown token
  bool byte_fallback = false;   // kCharBpe, kUnigram: a character without a token is its bytes' tokens
  size_t max_word_chars = 100;  // kWordPiece: a longer word is unknown as a whole
  std::string continuing =
      "##";  // kWordPiece: how tokens inside a word are spelled; empty: kWordMark before the others

  bool space_prefix = false;      // kSpm: a space before the text and after each control token
  bool marks_spaces = false;      // U+2581 in tokens is a space
  bool strip_first = false;       // decoding drops the one space that encoding put before the text
  bool cleanup = false;           // kWordPiece: no space before signs in decoded text
  bool join_with_spaces = false;  // decoding puts a space between the tokens' texts (a file without a decoder)

  std::vector<TokenId> before, after;  // what stands around a text where special tokens are added
};

// Cuts at white space, which goes, and around each sign: what BERT does before its own algorithm.
Status add_bert_steps(std::vector<PreStep>& steps);

// What the keys of a GGUF file ask for. `before` and `after` are filled by the caller.
Result<TextRules> rules_for_gguf(const VocabData& data);

}  // namespace minfer
