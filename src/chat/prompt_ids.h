// A rendered conversation as token ids: tokenized by origin, so that text inside a message that spells a control token
// stays ordinary text.
// Errors:  what cannot be encoded.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "chat/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace minfer::chat {

// The texts of the vocabulary's bos and eos for the template; those that it lacks stay empty.
void set_special_tokens(const Tokenizer& tokenizer, RenderOptions& options);

// Exactly one bos where the vocabulary or the template asks for one, and no eos after the end.
Result<std::vector<int32_t>> prompt_ids(const Tokenizer& tokenizer, const Rendered& rendered);

}  // namespace minfer::chat
