// Rendering, then tokenizing by origin.
#include "server/chat_prompt.h"

#include "base/error.h"
#include "chat/prompt_ids.h"

namespace minfer {

Result<ChatPrompt> ChatPrompt::create(const Model& model, const std::string& source) {
  const std::string& text = source.empty() ? model.chat_template() : source;
  std::optional<chat::ChatTemplate> parsed;
  if (!text.empty()) parsed = MINFER_TRY(chat::ChatTemplate::parse(text));
  return ChatPrompt(model, std::move(parsed), chat::AnswerFormat::detect(text));
}

Result<ChatPrompt::Ids> ChatPrompt::encode(const openai::Body& body) const {
  const Tokenizer* tokenizer = model_->tokenizer();
  if (tokenizer == nullptr) {
    return make_error(ErrorCode::kUnsupported, "model '{}': it has no vocabulary, expected one for a conversation",
                      model_->name());
  }
  if (!template_) return chat::missing_template(model_->name());
  chat::RenderOptions options;
  options.add_generation_prompt = body.add_generation_prompt;
  options.continue_final_message = body.continue_final_message;
  options.tools = body.tools;
  options.kwargs = body.template_kwargs;
  chat::set_special_tokens(*tokenizer, options);
  const auto rendered = MINFER_TRY(template_->render(body.messages, options));
  Ids out;
  out.thinking_open = rendered.thinking_open;
  out.ids = MINFER_TRY(chat::prompt_ids(*tokenizer, rendered));
  return out;
}

}  // namespace minfer
