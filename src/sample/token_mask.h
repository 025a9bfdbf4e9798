// TokenMask: which ids may be drawn, a bit each, in the form in which grammar engines give it.
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace minfer {

// Bit id % 32 of word id / 32 says whether the id may be drawn. Empty: all may. Bits of ids that do not exist mean
// nothing.
using TokenMask = std::span<const uint32_t>;

inline constexpr size_t mask_words(size_t n_vocab) { return (n_vocab + 31) / 32; }

// Calls visit(i) for each i < n that may be drawn, in ascending order. Requires: mask empty, or mask_words(n) long.
template <typename Visit>
void for_each_allowed(TokenMask mask, size_t n, Visit visit) {
  if (mask.empty()) {
    for (size_t i = 0; i < n; ++i) visit(i);
    return;
  }
  for (size_t first = 0; first < n; first += 32) {
    const uint32_t word = mask[first / 32];
    if (word == 0xffffffffu) {
      for (size_t i = first; i < std::min(first + 32, n); ++i) visit(i);
      continue;
    }
    for (uint32_t left = word; left != 0; left &= left - 1) {
      const size_t i = first + static_cast<size_t>(std::countr_zero(left));
      if (i >= n) return;
      visit(i);
    }
  }
}

inline bool allows_any(TokenMask mask, size_t n) {
  for (size_t w = 0; w < mask_words(n); ++w) {
    const size_t past = 32 * (w + 1);
    const uint32_t valid = past <= n ? 0xffffffffu : 0xffffffffu >> (past - n);
    if ((mask[w] & valid) != 0) return true;
  }
  return false;
}

}  // namespace minfer
