// From strings that break a repetition ("\n", ":") to the sequences of ids in which they occur.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace minfer {

// What is asked of a vocabulary.
struct BreakerVocab {
  int32_t n_vocab = 0;
  std::function<std::string_view(int32_t id)> piece;  // the bytes of an id; empty for one that has none
  // The ids of a text in the middle of a sentence: no special tokens, no space put before it.
  std::function<Result<std::vector<int32_t>>(std::string_view text)> encode;
};

inline constexpr size_t kBreakerBytes = 40;  // of a string at most
// All ids of all breakers: sixteen for each token of the largest vocabularies there are (262,144).
inline constexpr size_t kBreakerIdsTotal = size_t{1} << 22;
inline constexpr const char* kDryBreakers[] = {"\n", ":", "\"", "*"};  // as llama.cpp has it

// For SamplingParams::dry_breakers. An id whose piece holds a string is a sequence; an id whose piece ends with the
// beginning of a string, followed by the ids of the rest, is one too. Sorted, each once.
// Errors: a string that is empty or longer than kBreakerBytes; more than kBreakerIdsTotal; what encode() says.
Result<std::vector<std::vector<int32_t>>> dry_breakers(std::span<const std::string> strings, const BreakerVocab& vocab);

}  // namespace minfer
