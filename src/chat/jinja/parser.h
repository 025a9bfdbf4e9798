// Tokens to the typed tree.
// Errors: Raised with the position: what was found, what was expected. Nesting is bounded, so no source can overflow
//         the stack here or in the interpreter.
#pragma once

#include <string_view>

#include "chat/jinja/ast.h"

namespace minfer::chat::jinja {

// Brackets, blocks and operators inside each other. The deepest real template has 14; a parse uses about a dozen C++
// frames per level.
inline constexpr int kMaxNesting = 120;
// The longest way down an expression ("a ~ b ~ ..." is flat, "a + b + ..." is one level per term).
inline constexpr int kMaxExprHeight = 400;

Body parse(std::string_view source);

}  // namespace minfer::chat::jinja
