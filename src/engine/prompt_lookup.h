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

// How deep to guess for one run: by how often its guesses came true and what more rows cost.
class GuessDepth {
 public:
  // `others`: streams of the step besides this one, `rows`: their tokens. `decode_ms(n)`: time of a step of n tokens.
  // 0: guessing is not worth it now.
  template <typename DecodeMs>
  int32_t choose(int32_t most, int32_t others, int32_t rows, const DecodeMs& decode_ms) {
    double best = (others + 1) / (decode_ms(rows + 1) + 1e-9), expected = 0, chance = 1;
    int32_t depth = 0;
    for (int32_t k = 1; k <= most; ++k) {
      chance *= hit_;
      expected += chance;
      const double rate = (others + 1 + expected) / (decode_ms(rows + 1 + k) + 1e-9);
      if (rate > best) best = rate, depth = k;
    }
    if (depth > 0 || most == 0) {
      idle_ = 0;
    } else if (++idle_ >= kProbeAfter) {  // now and then one guess is tried all the same
      idle_ = 0;
      depth = 1;
    }
    return depth;
  }
  // So many were guessed, so many of them came true before the first that did not.
  void learn(int32_t guessed, int32_t accepted) {
    for (int32_t k = 0; k < guessed && k <= accepted; ++k) hit_ += kRate * ((k < accepted ? 1.0 : 0.0) - hit_);
  }
  double hit() const { return hit_; }

 private:
  static constexpr int32_t kProbeAfter = 32;  // tokens: costs at most 1/32 of a step's extra row
  static constexpr double kRate = 0.15;       // some six outcomes decide
  double hit_ = 0.5;                          // of one guess, when those before it were right
  int32_t idle_ = 0;
};

}  // namespace minfer
