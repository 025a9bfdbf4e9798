// StreamDecoder: token ids in, text out, never half a character.
// Bytes that begin a character are held until it is complete. Bytes that can be part of no character become U+FFFD, one
// per maximal ill-formed part, exactly as Python's bytes.decode("utf-8", errors="replace") does; so do leftovers at the
// end. The joined output of push()es and finish() equals utf8_replace() of the joined pieces.
// Errors:  an id outside the vocabulary.
// Threads: one owner; the tokenizer must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "minfer/error.h"
#include "tokenizer/tokenizer.h"

namespace minfer {

// Moves the longest prefix of `bytes` that is settled (whole characters, U+FFFD for faults) to `out`; what remains is
// the beginning of a character, at most 3 bytes.
void utf8_take_settled(std::string& bytes, std::string& out);

// The whole of `bytes` as valid UTF-8, faults replaced as above.
std::string utf8_replace(std::string_view bytes);

class StreamDecoder {
 public:
  // strip_space_prefix: see DecodeOptions; wanted when the ids begin a text, not when they continue a prompt.
  explicit StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options = {.strip_space_prefix = false});

  // The text that became certain with this token (often empty).
  Result<std::string> push(TokenId id);
  // The leftovers as U+FFFD; the decoder is as new afterwards.
  std::string finish();
  // Bytes held back, waiting for the rest of their character.
  std::string_view pending() const { return held_; }

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  bool at_start_ = true;
  std::string held_;
};

}  // namespace minfer
