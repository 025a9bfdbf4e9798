// DRY's sequence breakers in the ids of a vocabulary.
// Errors: as dry_breakers(). Threads: pure function. Cost: milliseconds, a pass over the vocabulary a string.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sample/dry_breakers.h"
#include "tokenizer/tokenizer.h"

namespace minfer {

Result<std::vector<std::vector<int32_t>>> dry_breakers(std::span<const std::string> strings,
                                                       const Tokenizer& tokenizer);

}  // namespace minfer
