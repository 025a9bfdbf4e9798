// Repeat, frequency and presence penalties.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "minfer/sampling.h"
#include "sample/candidates.h"

namespace minfer {

// The last n of `history`; n = -1: all of it.
std::span<const int32_t> last_ids(std::span<const int32_t> history, int32_t n);

class Penalties {
 public:
  static bool active(const SamplingParams& p);
  // Ids outside the row are passed over. `row` [n_vocab]; `history` [tokens so far], oldest first.
  void apply(std::span<float> row, std::span<const int32_t> history, const SamplingParams& p);
  void apply(Candidates& c, std::span<const int32_t> history, const SamplingParams& p);

 private:
  std::vector<int32_t> window_;
};

}  // namespace minfer
