// ChatPrompt: a model's chat template, parsed once, and conversations turned into the ids of a prompt with it. Text
// inside a message that spells a control token stays text; exactly one bos where the vocabulary or the template asks
// for one.
// Errors:  no template (as chat::missing_template() says it) or no vocabulary; what the template raises
//          (kInvalidArgument); what cannot be encoded.
// Threads: immutable once made; any number at once. The model must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chat/answer/format.h"
#include "chat/chat_template.h"
#include "model/model.h"
#include "server/openai/body.h"

namespace minfer {

class ChatPrompt {
 public:
  // `source`: Jinja text in the place of the model's own; empty: the model's. A model without any makes one that
  // refuses every conversation; a faulty template is an error at once.
  static Result<ChatPrompt> create(const Model& model, const std::string& source = "");

  struct Ids {
    std::vector<int32_t> ids;
    bool thinking_open = false;  // chat::Rendered::thinking_open
  };
  Result<Ids> encode(const openai::Body& body) const;  // Requires: a chat

  const Model& model() const { return *model_; }
  // How this template's answers write reasoning and calls.
  const chat::AnswerFormat& format() const { return format_; }

 private:
  ChatPrompt(const Model& model, std::optional<chat::ChatTemplate> parsed, chat::AnswerFormat format)
      : model_(&model), template_(std::move(parsed)), format_(std::move(format)) {}

  const Model* model_;
  std::optional<chat::ChatTemplate> template_;
  chat::AnswerFormat format_;
};

}  // namespace minfer
