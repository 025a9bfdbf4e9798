// Runs the steps between a normalized text and its pieces.
// Errors:  as pretokenize(); a rewritten text of 4 GiB or more.
// Threads: each call needs its own Scratch.
#pragma once

#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/rules.h"
#include "tokenizer/scratch.h"

namespace minfer {

// Fills scratch.pieces with the parts of the returned text, which is `text` or a view of scratch.text.
// at_start: `text` begins where the whole text does. Requires: text is no view of scratch.text.
Result<std::string_view> cut_text(const std::vector<PreStep>& steps, std::string_view text, bool at_start,
                                  Scratch& scratch);

}  // namespace minfer
