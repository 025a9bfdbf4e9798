// minfer template MODEL --messages FILE: the prompt a conversation is turned into; the vocabulary alone is read.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/error.h"
#include "chat/json.h"
#include "chat/prompt_ids.h"
#include "common.h"
#include "open_vocab.h"
#include "options.h"
#include "prompt.h"

namespace minfer::cli {
namespace {

constexpr size_t kMaxFileBytes = size_t{64} << 20;  // far beyond any context

struct TemplateFlags {
  std::string model, messages, tools, template_file;
  std::vector<std::string> kwargs;
  bool no_generation_prompt = false, ids = false;
};

// NAME=JSON, each name once and none that the conversation itself sets.
Result<std::vector<std::pair<std::string, chat::Value>>> parse_kwargs(const std::vector<std::string>& items) {
  std::vector<std::pair<std::string, chat::Value>> kwargs;
  for (const auto& item : items) {
    const size_t eq = item.find('=');
    if (eq == std::string::npos || eq == 0) {
      return make_error(ErrorCode::kInvalidArgument, "--kwarg: found '{}', expected NAME=JSON", item);
    }
    const std::string name = item.substr(0, eq);
    if (chat::is_conversation_variable(name)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--kwarg {}: this variable comes from the conversation and the model", name);
    }
    for (const auto& [before, value] : kwargs) {
      if (before == name) return make_error(ErrorCode::kInvalidArgument, "--kwarg {}: given twice", name);
    }
    auto value = chat::parse_json(std::string_view(item).substr(eq + 1));
    if (!value.ok()) {
      return make_error(ErrorCode::kInvalidArgument, "--kwarg {} (a string needs quotes: '\"text\"'): {}", name,
                        value.error().message);
    }
    kwargs.emplace_back(name, std::move(value).value());
  }
  return kwargs;
}

Result<int> run(const TemplateFlags& f) {
  if (f.messages == "-" && f.tools == "-") {
    return make_error(ErrorCode::kInvalidArgument, "--messages and --tools cannot both be standard input");
  }
  PromptOptions options;
  options.add_generation_prompt = !f.no_generation_prompt;
  options.kwargs = MINFER_TRY(parse_kwargs(f.kwargs));
  const VocabFile v = MINFER_TRY(open_vocab(f.model));
  const std::string source =
      MINFER_TRY(v.file.metadata().get_or<std::string>("tokenizer.chat_template", std::string()));
  if (!f.template_file.empty()) {
    options.template_source = MINFER_TRY(template_source(f.template_file));
  }
  const auto messages =
      MINFER_TRY_CTX(of_file(chat::messages_from_json(MINFER_TRY(read_input(f.messages, kMaxFileBytes)))),
                     "--messages '" + f.messages + "'");
  if (!f.tools.empty()) {
    options.tools = MINFER_TRY_CTX(of_file(chat::tools_from_json(MINFER_TRY(read_input(f.tools, kMaxFileBytes)))),
                                   "--tools '" + f.tools + "'");
  }
  const auto rendered = MINFER_TRY(render_chat(source, &v.tokenizer, v.file.path(), messages, options));
  std::string out;
  if (f.ids) {
    for (const int32_t id : MINFER_TRY(chat::prompt_ids(v.tokenizer, rendered))) {
      out += (out.empty() ? "" : " ") + std::to_string(id);
    }
    out += '\n';
  } else {
    out = rendered.text();
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return kOk;
}

}  // namespace

void add_template(CLI::App& app, Exit exit) {
  auto f = std::make_shared<TemplateFlags>();
  CLI::App* sub = app.add_subcommand("template", "the prompt that a conversation is turned into");
  add_model(*sub, f->model, "a GGUF file (a vocabulary alone will do) or the name of a cached model");
  add_text(*sub, "--messages", f->messages,
           "a JSON list of messages, or an object with \"messages\"; '-' reads standard input")
      ->required();
  add_text(*sub, "--tools", f->tools, "a JSON list of tool definitions, or an object with \"tools\"");
  add_text(*sub, "--template", f->template_file,
           "a chat template instead of the model's: a Jinja file, or chatml, llama3, mistral, gemma, phi3, ...");
  add_texts(*sub, "--kwarg", f->kwargs, "NAME=JSON: a further variable of the template; may be repeated");
  sub->add_flag("--no-generation-prompt", f->no_generation_prompt, "do not open the assistant's turn at the end");
  sub->add_flag("--ids", f->ids, "print the token ids instead of the text");
  sub->footer(
      "Examples:\n  minfer template smollm2 --messages chat.json\n"
      "  echo '[{\"role\":\"user\",\"content\":\"Hi\"}]' | minfer template smollm2 --messages - --kwarg "
      "enable_thinking=false");
  on_run(*sub, exit, [f] { return run(*f); });
}

}  // namespace minfer::cli
