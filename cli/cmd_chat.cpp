// minfer chat MODEL: a conversation.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/error.h"
#include "chat_talk.h"
#include "common.h"
#include "model_hash.h"
#include "open_engine.h"
#include "options.h"
#include "serving_flags.h"

namespace minfer::cli {
namespace {

constexpr Range kPredict = {-1, 1 << 30};
// Of the cache's size: so many contexts at most, for branches and what was undone.
constexpr int32_t kContexts = 4;

struct ChatFlags {
  ServingFlags serving;
  InsightFlags insight;
  SamplingFlags sampling;
  std::string model, system, session, template_file, overflow;
  int predict = -1;
  bool stats = false;
};

Result<Overflow> overflow_of(const std::string& name) {
  if (name.empty() || name == "error") return Overflow::kError;
  if (name == "truncate-oldest-turns") return Overflow::kTruncateOldestTurns;
  if (name == "shift") return Overflow::kShift;
  return make_error(ErrorCode::kInvalidArgument,
                    "--overflow: found '{}', expected error, truncate-oldest-turns or shift", name);
}

// A model that cannot chat, or a template that refuses a system message, says so before the weights are loaded.
Status check_template(const Model& model, const PromptOptions& prompt, const std::string& system) {
  std::vector<chat::Message> probe;
  if (!system.empty()) probe.push_back(chat::Message::make("system", system));
  probe.push_back(chat::Message::make("user", "Hello"));
  const auto ids = chat_ids(model, probe, prompt);
  if (!ids.ok()) return ids.error();
  return {};
}

Result<int> run(const ChatFlags& f) {
  TalkOptions talk;
  talk.sampling = MINFER_TRY(f.sampling.resolve());
  if (f.predict == 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--predict: found {}, expected 1 or more, or -1: until the answer ends", f.predict);
  }
  talk.overflow = MINFER_TRY(overflow_of(f.overflow));
  EngineOptions options = MINFER_TRY(f.serving.options());
  options.max_running = kContexts;
  MINFER_TRY(f.insight.check());
  if (!f.insight.dump_dir.empty()) options.speculation = 0;  // a step a token, as who compares two dumps expects
  if (!f.template_file.empty()) talk.prompt.template_source = MINFER_TRY(template_source(f.template_file));
  auto model = MINFER_TRY(open_model(f.model));
  MINFER_TRY(f.sampling.fit(talk.sampling, model->tokenizer(), model->hparams().n_vocab));
  MINFER_TRY(check_template(*model, talk.prompt, f.system));
  if (!f.session.empty()) options.model_sha256 = MINFER_TRY(model_sha256(*model->file()));
  StepTimes times;
  times.hook_into(options);
  OpenedEngine opened = MINFER_TRY(open_engine(std::move(model), std::move(options), f.insight));
  if (f.stats) std::fprintf(stderr, "seed: %llu\n", static_cast<unsigned long long>(talk.sampling.seed));
  talk.system = f.system, talk.session = f.session;
  talk.predict = f.predict, talk.stats = f.stats;
  ChatTalk chat(std::move(talk), *opened.engine, times);
  MINFER_TRY(chat.begin());
  const int code = chat.loop();
  chat.end();
  MINFER_TRY(opened.finish());
  return code;
}

}  // namespace

void add_chat(CLI::App& app, Exit exit) {
  auto f = std::make_shared<ChatFlags>();
  CLI::App* sub = app.add_subcommand("chat", "a conversation");
  add_model(*sub, f->model);
  add_integer(*sub, "-n,--predict", f->predict, kPredict,
              "tokens per answer at most; -1 = until the answer ends (default)");
  add_any_text(*sub, "--system", f->system, "a system message; replaces the one of a loaded conversation");
  add_text(*sub, "--session", f->session,
           "a file that holds the conversation: read if it exists, written after each turn; FILE.kv keeps its K and V, "
           "written at the end, so that it goes on without reading all of it again");
  add_text(*sub, "--template", f->template_file,
           "a chat template instead of the model's: a Jinja file, or chatml, llama3, mistral, gemma, phi3, ...");
  add_text(*sub, "--overflow", f->overflow,
           "what to do when the context is full: error (default), truncate-oldest-turns, or shift: leave the oldest "
           "tokens out wherever a turn ends");
  sub->add_flag("--stats", f->stats, "print timings and memory after each answer to stderr")->group("Insight");
  f->insight.add_to(*sub);
  f->serving.add_to(*sub, /*with_cache_type=*/true, /*many=*/false);
  f->sampling.add_to(*sub);
  sub->footer(std::string("In the conversation:\n") + kChatHelp +
              "When the context is full a message is refused; with --overflow something is left out, with a notice.\n\n"
              "Examples:\n"
              "  minfer chat smollm2\n  minfer chat smollm2 --system \"Be brief.\" --session talk.json --stats\n"
              "  printf 'Hello\\nAnd in French?\\n' | minfer chat smollm2 --temp 0");
  on_run(
      *sub, exit, [f] { return run(*f); }, /*polls_interrupt=*/true);
}

}  // namespace minfer::cli
