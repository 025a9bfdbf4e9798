// continue_final_message: the model goes on with the last message instead of answering it. As transformers 5 does it, a
// tag is put behind the message's text, the conversation is rendered, and the rendering is cut at the tag; where the
// template trimmed the text, what white space is left before the tag goes too.
// Errors:  [chat]: no message, no such field, a field the template does not read, a rendering without the text.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "chat/text.h"
#include "chat/value.h"

namespace minfer::chat {

struct TaggedMessages {
  Value messages;
  std::string text;  // what is continued: the field, or the last text part of it
};

// `field`: "content", "reasoning_content", ... of the last message.
Result<TaggedMessages> tag_final_message(const Value& messages, std::string_view field,
                                         std::string_view template_source);
Result<Text> cut_at_tag(const Text& rendered, std::string_view text);

// Whether the text ends inside a block of thinking that it opened itself.
bool opens_thinking(std::string_view text);
bool is_reasoning_field(std::string_view field);

}  // namespace minfer::chat
