// Pre-tokenization: where a text is cut before a vocabulary's own algorithm works on each piece.
// It is a list of steps; each step cuts every piece of the step before. A step is a regular expression (pattern.h) or,
// for the expressions that most models use and those that no automaton finds, a hand-written scanner. Errors:  a text
// on which a step would look at the same bytes again and again (never one of the named pre-tokenizers'). Threads: steps
// are read-only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/pattern.h"

namespace minfer {

struct Piece {
  uint32_t begin, end;
};

// What becomes of the matches of a step: as Hugging Face's split delimiter behaviours.
enum class SplitHow : uint8_t { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitStep {
  // Appends the parts of `text`, their offsets moved by `base`. Requires: text is not empty.
  using Scan = void (*)(std::string_view text, uint32_t base, std::vector<Piece>& out);

  Scan scan = nullptr;  // or a pattern:
  std::shared_ptr<const Pattern> pattern;
  SplitHow how = SplitHow::kIsolated;
  bool invert = false;  // what lies between the matches counts as matches

  static Result<SplitStep> make(std::string_view regex, SplitHow how = SplitHow::kIsolated, bool invert = false);
  // Without the scanners: what the tests compare them with.
  static Result<SplitStep> from_pattern(std::string_view regex, SplitHow how, bool invert);
};

// Falcon's digits, after its byte mapping: runs of bytes whose stand-in character is numeric.
void split_byte_digits(std::string_view text, uint32_t base, std::vector<Piece>& out);
// The byte mapping's own expression (GPT-2's).
void split_gpt2(std::string_view text, uint32_t base, std::vector<Piece>& out);

// Replaces `pieces` by what the step makes of them; `scratch` is working space. Requires: text.size() < 2^32.
Status pretokenize(const SplitStep& step, std::string_view text, std::vector<Piece>& pieces,
                   std::vector<Piece>& scratch);

}  // namespace minfer
