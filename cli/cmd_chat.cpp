// minfer chat MODEL: a conversation. Each turn renders all messages through the template; what the cache already holds
// of the result stays, so that only new text is computed.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "common.h"
#include "conversation.h"
#include "engine/generate.h"
#include "line_reader.h"
#include "options.h"
#include "stats.h"
#include "tokenizer/stream_decode.h"

namespace minfer::cli {
namespace {

constexpr Range kPredict = {-1, 1 << 30};
constexpr size_t kMaxLineBytes = size_t{16} << 20;  // far beyond any context
constexpr const char* kHelp =
    "  /help        this list\n"
    "  /clear       begin anew\n"
    "  /regen       answer the last message again\n"
    "  /save FILE   write the conversation as JSON\n"
    "  /load FILE   go on with a conversation from a file\n"
    "  /exit        end (so does Ctrl-D; Ctrl-C stops an answer)\n"
    "  //text       a message that begins with a slash\n";

struct ChatFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  std::string model, system, session, template_file;
  int predict = -1;
};

class Chat {
 public:
  Chat(const ChatFlags& flags, SamplingParams sampling, PromptOptions prompt, Loaded& loaded, Session session)
      : flags_(flags),
        sampling_(std::move(sampling)),
        prompt_(std::move(prompt)),
        loaded_(loaded),
        session_(std::move(session)),
        talk_(flags.system) {}

  Status begin() {
    if (!flags_.session.empty()) {
      std::error_code ec;
      if (std::filesystem::exists(flags_.session, ec)) {
        MINFER_TRY_CTX(talk_.load(flags_.session), "--session");
        say(fmt::format("going on with {} messages of {}", talk_.size(), flags_.session));
      }
      MINFER_TRY_CTX(talk_.save(flags_.session), "--session");  // now, not after the first answer
    }
    if (terminal_)
      say(fmt::format("{}, context of {} positions; /help for commands", loaded_.model->name(),
                      loaded_.runner->n_ctx()));
    return {};
  }

  // Reads and answers until the end. Returns the exit code.
  int loop() {
    std::string line;
    for (;;) {
      const auto end = read_line("> ", line, kMaxLineBytes);
      if (!end.ok()) {
        failed(end.error());
        if (end.error().code == ErrorCode::kIo) break;
        continue;
      }
      if (*end != LineEnd::kLine) {
        if (terminal_) std::fputc('\n', stderr);
        if (*end == LineEnd::kInterrupted) return kInterrupted;
        break;
      }
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      if (line[0] == '/' && !line.starts_with("//")) {
        if (!command(line)) break;
        continue;
      }
      if (utf8_replace(line) != line) {  // it could be neither saved nor shown to a template
        failed(make_error(ErrorCode::kInvalidArgument, "the message is not UTF-8"));
        continue;
      }
      talk_.add("user", line.starts_with("//") ? line.substr(1) : line);
      turn();
    }
    // A script learns from the exit code that a turn failed; a person has seen it.
    return n_failed_ > 0 && !terminal_ ? kFailed : kOk;
  }

 private:
  void say(const std::string& text) { std::fprintf(stderr, "minfer: %s\n", for_terminal(text).c_str()); }
  void failed(const Error& error) {
    report(error);
    ++n_failed_;
  }

  // Answers the last message; without an answer the message is taken back, so that it can be put differently.
  void turn() {
    const auto answered = answer();
    if (answered.ok() && *answered) {
      if (!flags_.session.empty()) {
        if (const auto saved = talk_.save(flags_.session); !saved.ok()) failed(saved.error());
      }
      return;
    }
    if (!answered.ok()) failed(answered.error());
    if (talk_.last_is("user")) talk_.remove_last();
  }

  // False: stopped before there was any text.
  Result<bool> answer() {
    const int32_t n_ctx = loaded_.runner->n_ctx();
    // A quarter of the context is kept free for answers, so that a long conversation is not cut and read again each
    // turn.
    const int32_t quarter = std::max(1, n_ctx / 4);
    const int32_t room = flags_.predict > 0 ? std::min(flags_.predict, quarter) : quarter;
    size_t dropped = 0;
    const auto ids = MINFER_TRY(talk_.prompt(*loaded_.model, prompt_, n_ctx, room, &dropped));
    if (ids.empty())
      return make_error(ErrorCode::kInvalidArgument, "the template makes an empty prompt of this conversation");
    if (dropped > 0) {
      say(fmt::format("notice: the context is full; the {} oldest messages are left out from here on", dropped));
    }
    GenerateOptions options;
    options.max_tokens = flags_.predict;
    options.sampling = sampling_;
    options.sampling.seed += n_regenerated_;  // another answer, reproducible too
    options.cancel = &interrupted();
    std::optional<Progress> bar(std::in_place, "reading", "tokens");
    options.on_prefill = [&](size_t done, size_t total) {
      bar->update(static_cast<int64_t>(done), static_cast<int64_t>(total));
      if (done == total) bar.reset();
      return true;
    };
    options.on_text = [](std::string_view piece) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    };
    auto generated = generate(session_, ids, options);
    clear_interrupt();  // Ctrl-C stopped this answer and nothing else
    bar.reset();
    const Generated g = MINFER_TRY(std::move(generated));
    std::fputc('\n', stdout);
    std::fflush(stdout);
    if (flags_.engine.stats) std::fputs(make_stats(g.stats, loaded_).text().c_str(), stderr);
    if (g.finish == FinishReason::kContext) say("notice: the context is full; the answer was cut there");
    if (g.finish == FinishReason::kLength)
      say(fmt::format("notice: the answer was cut after {} tokens (--predict)", g.ids.size()));
    if (g.finish == FinishReason::kCancelled) say("stopped");
    if (g.finish == FinishReason::kCancelled && g.text.empty()) return false;
    talk_.add("assistant", g.text);
    return true;
  }

  // False: the end.
  bool command(const std::string& line) {
    const size_t space = line.find_first_of(" \t");
    const std::string name = line.substr(0, space);
    const size_t from = space == std::string::npos ? space : line.find_first_not_of(" \t", space);
    const std::string argument =
        from == std::string::npos ? "" : line.substr(from, line.find_last_not_of(" \t") + 1 - from);
    const bool takes_file = name == "/save" || name == "/load";
    if (name == "/exit" || name == "/quit") return false;
    if (name == "/help") {
      std::fputs(kHelp, stderr);
    } else if (name == "/clear") {
      talk_.clear();
    } else if (name == "/regen") {
      regenerate();
    } else if (takes_file && argument.empty()) {
      failed(make_error(ErrorCode::kInvalidArgument, "{}: expected a file name", name));
    } else if (name == "/save") {
      const auto saved = talk_.save(argument);
      saved.ok() ? say(fmt::format("saved {} messages to {}", talk_.size(), argument)) : failed(saved.error());
    } else if (name == "/load") {
      const auto read = talk_.load(argument);
      read.ok() ? say(fmt::format("going on with {} messages of {}", talk_.size(), argument)) : failed(read.error());
    } else {
      failed(
          make_error(ErrorCode::kInvalidArgument, "'{}' is no command here; there are:\n{}", name, std::string(kHelp)));
    }
    return true;
  }

  void regenerate() {
    if (!talk_.last_is("assistant") && !talk_.last_is("user")) {
      failed(make_error(ErrorCode::kInvalidArgument, "/regen: there is no message to answer yet"));
      return;
    }
    const Conversation before = talk_;
    if (talk_.last_is("assistant")) talk_.remove_last();
    ++n_regenerated_;
    const auto answered = answer();
    if (answered.ok() && *answered) {
      if (!flags_.session.empty()) {
        if (const auto saved = talk_.save(flags_.session); !saved.ok()) failed(saved.error());
      }
      return;
    }
    if (!answered.ok()) failed(answered.error());
    talk_ = before;
  }

  const ChatFlags& flags_;
  SamplingParams sampling_;
  PromptOptions prompt_;
  Loaded& loaded_;
  Session session_;
  Conversation talk_;
  uint64_t n_regenerated_ = 0;
  int n_failed_ = 0;
  const bool terminal_ = isatty(STDIN_FILENO) != 0;
};

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
  SamplingParams sampling = MINFER_TRY(f.sampling.resolve());
  if (f.predict == 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--predict: found {}, expected 1 or more, or -1: until the answer ends", f.predict);
  }
  MINFER_TRY(f.engine.check());
  PromptOptions prompt;
  if (!f.template_file.empty()) prompt.template_source = MINFER_TRY(template_source(f.template_file));
  auto model = MINFER_TRY(open_model(f.model));
  MINFER_TRY(f.sampling.fit(sampling, model->tokenizer(), model->hparams().n_vocab));
  MINFER_TRY(check_template(*model, prompt, f.system));
  Loaded loaded = MINFER_TRY(load(std::move(model), f.engine));
  if (f.engine.stats) std::fprintf(stderr, "seed: %llu\n", static_cast<unsigned long long>(sampling.seed));
  Session session = MINFER_TRY(Session::open(*loaded.runner));
  Chat chat(f, std::move(sampling), std::move(prompt), loaded, std::move(session));
  MINFER_TRY(chat.begin());
  const int code = chat.loop();
  MINFER_TRY(loaded.finish());
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
           "a file that holds the conversation: read if it exists, written after each turn");
  add_text(*sub, "--template", f->template_file,
           "a chat template instead of the model's: a Jinja file, or chatml, llama3, mistral, gemma, phi3, ...");
  f->engine.add_to(*sub, /*with_json=*/false);
  f->sampling.add_to(*sub);
  sub->footer(std::string("In the conversation:\n") + kHelp +
              "When the context is full the oldest turns are left out, with a notice.\n\nExamples:\n"
              "  minfer chat smollm2\n  minfer chat smollm2 --system \"Be brief.\" --session talk.json --stats\n"
              "  printf 'Hello\\nAnd in French?\\n' | minfer chat smollm2 --temp 0");
  on_run(
      *sub, exit, [f] { return run(*f); }, /*polls_interrupt=*/true);
}

}  // namespace minfer::cli
