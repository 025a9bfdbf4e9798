// PromptLookup: guesses how a text goes on from what followed the same few ids earlier in it (quotes, code, lists).
// Source: Saxena, "Prompt Lookup Decoding", 2023.
// Threads: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace minfer {

class PromptLookup {
 public:
  // At most `n` guesses of what comes after `ids`, into `guess` (empty when nothing like the end occurred before).
  // `ids` must be those of the last call with more behind them: only what is new is read.
  void guess(std::span<const int32_t> ids, int32_t n, std::vector<int32_t>& guess);

 private:
  static constexpr std::array<int32_t, 3> kLengths = {4, 3, 2};              // of what must be the same, longest first
  std::array<std::unordered_map<uint64_t, int32_t>, kLengths.size()> last_;  // hash of the ids -> position after them
  size_t read_ = 0;                                                          // ids whose endings are in last_
};

}  // namespace minfer
