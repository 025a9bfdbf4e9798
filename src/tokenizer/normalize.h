// Normalizers: what is done to a text before it is cut. Named as in tokenizer.json.
// Bytes that are no UTF-8 stay as they are, except under a charsmap (U+FFFD, as SentencePiece).
// Errors:  a result of 4 GiB or more; a pattern that searches quadratically.
// Threads: read-only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/pattern.h"

namespace minfer {

struct Normalizer {
  enum class Kind : uint8_t {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStripAccents,   // marks are removed; the text is decomposed only if a step before did so
    kBert,           // clean, chinese, strip_accents, lowercase
    kReplace,        // `from`, or what `pattern` matches, becomes `to`
    kPrepend,        // `to` before a text that is not empty
    kStrip,          // white space at the left, right
    kNmt,            // control characters removed, odd spaces made spaces
    kPrecompiled,    // `map`, a grapheme at a time, as Hugging Face applies it
    kSentencePiece,  // `map` (or none) as SentencePiece applies it, then its handling of spaces
  };
  Kind kind = Kind::kNfc;
  std::string from, to;                                                       // kReplace, kPrepend
  std::shared_ptr<const Pattern> pattern;                                     // kReplace
  std::shared_ptr<const Charsmap> map;                                        // kPrecompiled, kSentencePiece
  bool left = true, right = true;                                             // kStrip
  bool clean = true, chinese = true, strip_accents = true, lowercase = true;  // kBert
  bool collapse = true,
       prefix = true;  // kSentencePiece: spaces in a row are one, none at the ends; U+2581 before the text
};

// `text` after all steps. The result is `text` itself or a view of `buffer`; `scratch` is working space.
Result<std::string_view> normalize(const std::vector<Normalizer>& steps, std::string_view text, std::string& buffer,
                                   std::string& scratch);

}  // namespace minfer
