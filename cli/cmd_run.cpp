// minfer run MODEL [PROMPT|-]: one answer, streamed.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/memory_info.h"
#include "common.h"
#include "engine/generate.h"
#include "model_hash.h"
#include "options.h"
#include "prompt.h"
#include "server/stamp.h"
#include "stats.h"

namespace minfer::cli {
namespace {

constexpr Range kPredict = {-1, 1 << 30};
constexpr size_t kMaxPromptBytes = size_t{64} << 20;  // far beyond any context; bounds what is read from stdin

struct RunFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  std::string model, prompt, system, template_file;
  int predict = -1;
  bool no_template = false, ignore_eos = false, special = false, has_prompt = false, stamp = false;
};

Result<std::vector<int32_t>> prompt_ids(const RunFlags& f, const Model& model, const std::string& text) {
  if (model.tokenizer() == nullptr) return make_error(ErrorCode::kUnsupported, "this model has no vocabulary");
  // A model without a chat template is a base model: its text is simply continued, and only --system would be lost.
  const bool plain = f.no_template || (model.chat_template().empty() && f.template_file.empty() && f.system.empty());
  if (plain) {
    return model.tokenizer()->encode(text, {.add_special = true, .parse_special = f.special});
  }
  PromptOptions options;
  if (!f.template_file.empty()) options.template_source = MINFER_TRY(template_source(f.template_file));
  std::vector<chat::Message> messages;
  if (!f.system.empty()) messages.push_back(chat::Message::make("system", f.system));
  messages.push_back(chat::Message::make("user", text));
  return chat_ids(model, messages, options);
}

// What `minfer replay` needs to make the answer again.
Result<nlohmann::ordered_json> stamp_of(const Loaded& loaded, std::span<const int32_t> prompt,
                                        const GenerateOptions& options, const Generated& g) {
  const KvShape& kv = loaded.runner->kv_shape();
  const StampedModel model = {MINFER_TRY(model_sha256(*loaded.model->file())), std::string(dtype_info(kv.type_k).name),
                              std::string(dtype_info(kv.type_v).name)};
  Request request;
  request.prompt.assign(prompt.begin(), prompt.end());
  request.sampling = options.sampling;
  request.max_tokens = options.max_tokens;
  request.ignore_eos = options.ignore_eos;
  request.show_control = options.show_control;
  Choice choice;
  choice.ids = g.ids;
  choice.text = g.text;
  choice.finish = g.finish;
  return make_stamp(model, request, {choice});
}

Result<int> run(const RunFlags& f) {
  SamplingParams sampling = MINFER_TRY(f.sampling.resolve());
  if (f.stamp && !f.engine.json) {
    return make_error(ErrorCode::kInvalidArgument, "--stamp: it is a part of the output of --json");
  }
  if (f.no_template && !(f.template_file.empty() && f.system.empty())) {
    return make_error(ErrorCode::kInvalidArgument, "--no-template and {} contradict each other",
                      f.system.empty() ? "--template" : "--system (it needs a template)");
  }
  MINFER_TRY(f.engine.check());
  std::string text = f.prompt;
  if (!f.has_prompt || f.prompt == "-") text = MINFER_TRY(read_stdin(kMaxPromptBytes));
  Loaded loaded = MINFER_TRY(load(f.model, f.engine));
  const auto ids = MINFER_TRY(prompt_ids(f, *loaded.model, text));
  MINFER_TRY(f.sampling.fit(sampling, loaded.model->tokenizer(), loaded.runner->n_vocab()));
  if (ids.empty()) return make_error(ErrorCode::kInvalidArgument, "the prompt is empty");
  Runner& runner = *loaded.runner;
  if (ids.size() >= static_cast<size_t>(runner.n_ctx())) {
    return make_error(
        ErrorCode::kOutOfRange, "the prompt has {} tokens, the context {}: no room for an answer{}", ids.size(),
        runner.n_ctx(),
        runner.n_ctx() < loaded.model->hparams().n_ctx_train
            ? fmt::format("; a longer --ctx may help (the model allows {})", loaded.model->hparams().n_ctx_train)
            : ", and the model allows no longer one");
  }
  Session session = MINFER_TRY(Session::open(runner));
  GenerateOptions options;
  options.max_tokens = f.predict;
  options.sampling = sampling;
  options.ignore_eos = f.ignore_eos;
  options.show_control = f.special;
  options.cancel = &interrupted();
  Progress bar("reading the prompt", "tokens");
  options.on_prefill = [&](size_t done, size_t total) {
    bar.update(static_cast<int64_t>(done), static_cast<int64_t>(total));
    return true;
  };
  if (!f.engine.json) {
    options.on_text = [](std::string_view piece) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    };
  }
  const Generated g = MINFER_TRY(generate(session, ids, options));
  const StatsReport stats = make_stats(g.stats, loaded);
  if (f.engine.json) {
    nlohmann::ordered_json j;
    j["text"] = g.text;
    j["token_ids"] = g.ids;
    j["prompt_ids"] = ids;
    j["finish_reason"] = finish_reason_name(g.finish);
    j["seed"] = sampling.seed;
    stats.add_to(j);
    if (f.stamp && g.finish != FinishReason::kCancelled) {
      j["minfer"] = MINFER_TRY(stamp_of(loaded, ids, options, g));
    }
    std::printf("%s\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    if (g.text.empty() || g.text.back() != '\n') std::printf("\n");
    std::fflush(stdout);
  }
  if (f.engine.stats) {
    std::fprintf(stderr, "seed: %llu\n%s", static_cast<unsigned long long>(sampling.seed), stats.text().c_str());
  }
  MINFER_TRY(loaded.finish());
  if (g.finish == FinishReason::kContext) {
    return make_error(ErrorCode::kOutOfRange, "the answer stopped because the context of {} positions is full",
                      runner.n_ctx());
  }
  return g.finish == FinishReason::kCancelled ? kInterrupted : kOk;
}

}  // namespace

void add_run(CLI::App& app, Exit exit) {
  auto f = std::make_shared<RunFlags>();
  CLI::App* sub = app.add_subcommand("run", "answer one prompt, streamed");
  add_model(*sub, f->model);
  auto* prompt = add_any_text(*sub, "prompt", f->prompt, "the prompt; '-' or nothing reads standard input");
  add_integer(*sub, "-n,--predict", f->predict, kPredict,
              "tokens to generate at most; -1 = until the answer ends (default)");
  add_any_text(*sub, "--system", f->system, "a system message");
  add_text(*sub, "--template", f->template_file,
           "a chat template instead of the model's: a Jinja file, or chatml, llama3, mistral, gemma, phi3, ...");
  sub->add_flag("--no-template", f->no_template, "continue the text as it is, without the chat template");
  add_special(*sub, f->special, "show control tokens; with --no-template also parse them in the prompt");
  sub->add_flag("--ignore-eos", f->ignore_eos, "do not stop at the end of the answer");
  sub->add_flag("--stamp", f->stamp, "with --json: add what minfer replay needs to make the answer again")
      ->group("Insight");
  f->engine.add_to(*sub);
  f->sampling.add_to(*sub);
  sub->footer(
      "Examples:\n  minfer run smollm2 \"What is the capital of France?\"\n  echo \"Hello\" | minfer run model.gguf "
      "--temp 0 --stats\n"
      "  minfer run model.gguf \"Once upon\" --no-template -n 64 --seed 7 --json");
  on_run(
      *sub, exit,
      [f, prompt] {
        f->has_prompt = prompt->count() > 0;
        return run(*f);
      },
      /*polls_interrupt=*/true);
}

}  // namespace minfer::cli
