// minfer run MODEL [PROMPT|-]: one answer, streamed.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "common.h"
#include "model_hash.h"
#include "open_engine.h"
#include "options.h"
#include "prompt.h"
#include "server/stamp.h"
#include "serving_flags.h"
#include "stats.h"

namespace minfer::cli {
namespace {

constexpr Range kPredict = {-1, 1 << 30};
constexpr size_t kMaxPromptBytes = size_t{64} << 20;  // far beyond any context; bounds what is read from stdin

struct RunFlags {
  ServingFlags serving;
  InsightFlags insight;
  SamplingFlags sampling;
  std::string model, prompt, system, template_file;
  int predict = -1;
  bool no_template = false, ignore_eos = false, special = false, has_prompt = false, stamp = false, stats = false,
       json = false;
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
Result<nlohmann::ordered_json> stamp_of(Engine& engine, const EngineOptions& options, const Request& request,
                                        const Choice& choice) {
  const StampedModel model = {MINFER_TRY(model_sha256(*engine.model().file())), options.cache_type_k,
                              options.cache_type_v};
  return make_stamp(model, request, {choice});
}

Result<int> run(const RunFlags& f) {
  SamplingParams sampling = MINFER_TRY(f.sampling.resolve());
  if (f.stamp && !f.json) {
    return make_error(ErrorCode::kInvalidArgument, "--stamp: it is a part of the output of --json");
  }
  if (f.no_template && !(f.template_file.empty() && f.system.empty())) {
    return make_error(ErrorCode::kInvalidArgument, "--no-template and {} contradict each other",
                      f.system.empty() ? "--template" : "--system (it needs a template)");
  }
  EngineOptions options = MINFER_TRY(f.serving.options());
  options.max_running = 1;
  MINFER_TRY(f.insight.check());
  if (!f.insight.dump_dir.empty()) options.speculation = 0;  // a step a token, as who compares two dumps expects
  StepTimes times;
  times.hook_into(options);
  std::string text = f.prompt;
  if (!f.has_prompt || f.prompt == "-") text = MINFER_TRY(read_stdin(kMaxPromptBytes));
  OpenedEngine opened = MINFER_TRY(open_engine(MINFER_TRY(open_model(f.model)), options, f.insight));
  Engine& engine = *opened.engine;
  const Model& model = engine.model();
  Request request;
  request.prompt = MINFER_TRY(prompt_ids(f, model, text));
  MINFER_TRY(f.sampling.fit(sampling, model.tokenizer(), model.hparams().n_vocab));
  if (request.prompt.empty()) return make_error(ErrorCode::kInvalidArgument, "the prompt is empty");
  const int32_t n_ctx = engine.n_ctx();
  const auto n_prompt = static_cast<int64_t>(request.prompt.size());
  if (n_prompt >= n_ctx) {
    return make_error(ErrorCode::kOutOfRange, "the prompt has {} tokens, the context {}: no room for an answer{}",
                      n_prompt, n_ctx,
                      n_ctx < model.hparams().n_ctx_train
                          ? fmt::format("; a longer --ctx may help (the model allows {})", model.hparams().n_ctx_train)
                          : ", and the model allows no longer one");
  }
  // More than the context can hold ends where it is full, and says so.
  const bool fits = n_prompt + std::max(f.predict, 1) - 1 <= n_ctx;
  request.max_tokens = fits ? f.predict : -1;
  request.sampling = sampling;
  request.ignore_eos = f.ignore_eos;
  request.show_control = f.special;
  std::optional<Progress> bar(std::in_place, "reading the prompt", "tokens");
  request.on_prompt = [&](int64_t done, int64_t total) {
    bar->update(done, total);
    if (done == total) bar.reset();
    return !interrupted();
  };
  request.on_event = [&](const Event& event) {
    times.first_token();
    if (!f.json) {
      std::fwrite(event.text.data(), 1, event.text.size(), stdout);
      std::fflush(stdout);
    }
    return !interrupted();
  };
  const Response response = MINFER_TRY(engine.run(request));
  const Choice& answer = response.choices[0];
  const StatsReport stats = make_stats(response, times, engine);
  if (f.json) {
    nlohmann::ordered_json j;
    j["text"] = answer.text;
    j["token_ids"] = answer.ids;
    j["prompt_ids"] = request.prompt;
    j["finish_reason"] = finish_reason_name(answer.finish);
    j["seed"] = sampling.seed;
    stats.add_to(j);
    if (f.stamp && answer.finish != FinishReason::kCancelled) {
      j["minfer"] = MINFER_TRY(stamp_of(engine, options, request, answer));
    }
    std::printf("%s\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    if (answer.text.empty() || answer.text.back() != '\n') std::printf("\n");
    std::fflush(stdout);
  }
  if (f.stats) {
    std::fprintf(stderr, "seed: %llu\n%s", static_cast<unsigned long long>(sampling.seed), stats.text().c_str());
  }
  MINFER_TRY(opened.finish());
  if (answer.finish == FinishReason::kContext) {
    return make_error(ErrorCode::kOutOfRange, "the answer stopped because the context of {} positions is full", n_ctx);
  }
  return answer.finish == FinishReason::kCancelled ? kInterrupted : kOk;
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
  sub->add_flag("--stats", f->stats, "print timings and memory to stderr")->group("Insight");
  f->insight.add_to(*sub);
  sub->add_flag("--json", f->json, "print one JSON object")->group("Insight");
  f->serving.add_to(*sub, /*with_cache_type=*/true, /*many=*/false);
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
