// Rendering, then tokenizing by origin.
#include "server/chat_prompt.h"

#include "base/error.h"

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
  const int32_t bos = tokenizer->bos();
  if (bos != kNoToken) options.bos_token = tokenizer->text(bos);
  if (tokenizer->eos() != kNoToken) options.eos_token = tokenizer->text(tokenizer->eos());
  const auto rendered = MINFER_TRY(template_->render(body.messages, options));

  std::vector<TextSegment> segments;
  segments.reserve(rendered.segments.size());
  for (const auto& s : rendered.segments) segments.push_back({s.text, s.from_template});
  Ids out;
  out.thinking_open = rendered.thinking_open;
  out.ids = MINFER_TRY(tokenizer->encode_segments(segments, /*add_special=*/false));
  if (tokenizer->add_bos() && bos != kNoToken && (out.ids.empty() || out.ids.front() != bos)) {
    out.ids.insert(out.ids.begin(), bos);
  }
  return out;
}

}  // namespace minfer
