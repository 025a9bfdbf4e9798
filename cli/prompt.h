// A conversation as token ids: rendered through the chat template, then tokenized by origin, so that text inside a
// message that spells a control token stays ordinary text.
// Errors:  no template or no vocabulary (both named with the model), what the template raises, what cannot be encoded.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "chat/chat_template.h"
#include "model/model.h"

namespace minfer::cli {

struct PromptOptions {
  std::string template_source;  // Jinja text; empty: the model's own
  bool add_generation_prompt = true;
  chat::Value tools;                                        // list of definitions or none
  std::vector<std::pair<std::string, chat::Value>> kwargs;  // further variables: enable_thinking, ...
};

// The Jinja text that --template FILE|NAME means: a file's content, or a template minfer knows by name.
// Errors: neither a file nor a known name (the names are listed); no regular file; an empty file.
Result<std::string> template_source(const std::string& file_or_name);

// `tokenizer` gives the template its bos_token and eos_token; null: both are empty.
Result<chat::Rendered> render_chat(const std::string& template_source, const Tokenizer* tokenizer,
                                   const std::string& model_name, const std::vector<chat::Message>& messages,
                                   const PromptOptions& options);

// That and chat::prompt_ids() in a row: the prompt, with exactly one bos where the vocabulary or the template asks for
// one, and no eos after it.
Result<std::vector<int32_t>> chat_ids(const Model& model, const std::vector<chat::Message>& messages,
                                      const PromptOptions& options = {});

}  // namespace minfer::cli
