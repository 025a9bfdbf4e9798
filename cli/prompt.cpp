// Template rendering and tokenization of conversations.
#include "prompt.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "chat/named_templates.h"
#include "chat/prompt_ids.h"
#include "common.h"

namespace minfer::cli {
namespace {

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;  // the largest published template has some 20 KB

}  // namespace

Result<std::string> template_source(const std::string& file_or_name) {
  std::error_code ec;
  if (!std::filesystem::exists(file_or_name, ec)) {
    auto named = chat::named_template(file_or_name);
    if (named.ok()) return std::string(*named);
    // What looks like a path is a file that is missing, everything else a wrong name.
    const bool path = file_or_name.find_first_of("/.") != std::string::npos;
    return Error{path ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
                 "--template '" + file_or_name + "': no such file: " + named.error().message};
  }
  auto source = MINFER_TRY_CTX(read_regular_file(file_or_name, kMaxTemplateBytes), "--template");
  if (source.empty()) return make_error(ErrorCode::kCorrupt, "--template '{}': the file is empty", file_or_name);
  return source;
}

Result<chat::Rendered> render_chat(const std::string& template_source, const Tokenizer* tokenizer,
                                   const std::string& model_name, const std::vector<chat::Message>& messages,
                                   const PromptOptions& options) {
  const std::string& source = options.template_source.empty() ? template_source : options.template_source;
  if (source.empty()) return chat::missing_template(model_name);
  const auto parsed = MINFER_TRY(of_file(chat::ChatTemplate::parse(source)));
  chat::RenderOptions r;
  r.add_generation_prompt = options.add_generation_prompt;
  r.tools = options.tools;
  r.kwargs = options.kwargs;
  if (tokenizer != nullptr) chat::set_special_tokens(*tokenizer, r);
  auto rendered = parsed.render(messages, r);
  if (!rendered.ok()) {  // the template's refusal of a conversation, not a fault of the command line
    return Error{ErrorCode::kUnsupported, rendered.error().message};
  }
  return rendered;
}

Result<std::vector<int32_t>> chat_ids(const Model& model, const std::vector<chat::Message>& messages,
                                      const PromptOptions& options) {
  if (model.tokenizer() == nullptr) {
    return make_error(ErrorCode::kUnsupported,
                      "model '{}': it has no vocabulary, expected one to tokenize a conversation", model.name());
  }
  return chat::prompt_ids(*model.tokenizer(), MINFER_TRY(render_chat(model.chat_template(), model.tokenizer(),
                                                                     model.name(), messages, options)));
}

}  // namespace minfer::cli
