// DRY ("don't repeat yourself"): an id that would lengthen a repetition of what was just said is made less likely, the
// more so the longer the repetition is.
// Source: p-e-w, text-generation-webui pull request 5677; sequence breakers as in llama.cpp.
// Threads: one at a time; apply() reuses its buffers. Cost: linear in the window, whatever it holds.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "minfer/sampling.h"
#include "sample/candidates.h"

namespace minfer {

// Which sequences of ids break a repetition: a trie.
class BreakerTrie {
 public:
  explicit BreakerTrie(std::span<const std::vector<int32_t>> sequences);
  // How many ids of `window` [n] stand after the last one of the sequence that ends last; n if there is none.
  size_t since_break(std::span<const int32_t> window) const;
  bool breaks_alone(int32_t id) const;  // a sequence of its own

 private:
  struct Node {
    bool end = false;
  };
  uint32_t next(uint32_t node, int32_t id) const;  // 0: none
  std::vector<Node> nodes_{1};
  std::unordered_map<uint64_t, uint32_t> edges_;  // node << 32 | id
  size_t longest_ = 0;
};

class Dry {
 public:
  explicit Dry(const SamplingParams& p) : breakers_(p.dry_breakers) {}
  static bool active(const SamplingParams& p);
  // What each id loses, by id. `history` [tokens so far], oldest first.
  std::span<const std::pair<int32_t, double>> penalties(std::span<const int32_t> history, const SamplingParams& p);
  // Ids outside the row are passed over; no logit falls below the least finite number.
  void apply(std::span<float> row, std::span<const int32_t> history, const SamplingParams& p);
  void apply(Candidates& c, std::span<const int32_t> history, const SamplingParams& p);

 private:
  BreakerTrie breakers_;
  std::vector<int32_t> backwards_, z_;
  std::vector<std::pair<int32_t, int32_t>> lengths_;  // id, length of the repetition it would go on with
  std::vector<std::pair<int32_t, double>> penalties_;
};

}  // namespace minfer
