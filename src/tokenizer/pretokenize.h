// Pre-tokenizers of byte-level BPE models: where a text is cut before merging.
// A pre-tokenizer is a list of steps; each step cuts every piece of the step before. The steps are hand-written
// scanners over code points, one pass, no backtracking over a run, no recursion: time is linear in the text. Source:
// the pre_tokenizer sections of the models' tokenizer.json; each scanner in pretokenize.cpp quotes its pattern.
// Threads: stateless.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minfer {

// Cuts `piece`: appends the end of each part, plus `base`, in ascending order; the last is base + piece.size().
// Requires: piece is not empty.
using SplitStep = void (*)(std::string_view piece, uint32_t base, std::vector<uint32_t>& ends);

struct Pretokenizer {
  std::string_view name;  // as tokenizer.ggml.pre spells it
  std::span<const SplitStep> steps;
  bool nfc = false;            // the text is brought to NFC first
  bool ignore_merges = false;  // a piece that is a token as a whole is that token, whatever the merges say
  bool add_bos = false;        // where the file does not say
};

// nullptr when there is none of that name.
const Pretokenizer* find_pretokenizer(std::string_view name);

// "command-r, deepseek-coder, ...": for messages.
std::string pretokenizer_names();

// Replaces `ends` by the ends of the pieces of `text`; `scratch` is working space.
// Requires: text.size() < 2^32.
void pretokenize(const Pretokenizer& pre, std::string_view text, std::vector<uint32_t>& ends,
                 std::vector<uint32_t>& scratch);

}  // namespace minfer
