// minfer: picks the command. `minfer MODEL "prompt"` is `minfer run MODEL "prompt"`.
// Exit codes: 0 fine, 1 the run failed, 2 the arguments were wrong, 130 Ctrl-C.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>

#include "base/error.h"
#include "base/thread_pool.h"
#include "common.h"
#include "options.h"

namespace minfer::cli {
namespace {

constexpr const char* kExamples =
    "MODEL is the path of a GGUF file or the name of a cached model (minfer list), of which a unique beginning will "
    "do.\n"
    "\n"
    "Examples:\n"
    "  minfer smollm2 \"What is the capital of France?\"    the same as minfer run\n"
    "  minfer chat smollm2 --system \"Be brief.\"           a conversation\n"
    "  minfer inspect smollm2                             what is in the file, how much memory it needs\n"
    "  minfer quantize model.gguf small.gguf q4_0         the same model in another type\n"
    "  minfer bench smollm2 -p 512 -n 128                 speed, beside the machine's limits\n"
    "\n"
    "minfer COMMAND --help explains a command. Answers go to standard output, everything else to standard error.\n"
    "Exit codes: 0 fine, 1 the run failed, 2 the arguments were wrong, 130 Ctrl-C.";

void add_commands(CLI::App& app, const Exit& exit) {
  add_run(app, exit);
  add_chat(app, exit);
  add_list(app, exit);
  add_inspect(app, exit);
  add_quantize(app, exit);
  add_tokenize(app, exit);
  add_template(app, exit);
  add_logits(app, exit);
  add_perplexity(app, exit);
  add_bench(app, exit);
  add_batch(app, exit);
  add_replay(app, exit);
}

bool is_command(const CLI::App& app, const std::string& word) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->check_name(word)) return true;
  }
  return false;
}

// Where the first word is no command it must be a model: then `run` is put before it. Returns the exit code if it is
// neither: that of a missing file for what looks like one.
int insert_run(const CLI::App& app, std::vector<std::string>& words) {
  if (words[0].empty() || words[0][0] == '-' || is_command(app, words[0])) return kOk;
  const auto model = resolve_model(words[0]);
  if (model.ok()) {
    words.insert(words.begin(), "run");
    return kOk;
  }
  const bool file = words[0].find('/') != std::string::npos || words[0].ends_with(".gguf");
  if (file || model.error().code != ErrorCode::kNotFound) return report(model.error());
  std::string commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands += (commands.empty() ? "" : ", ") + sub->get_name();
  }
  return report(make_error(ErrorCode::kInvalidArgument, "'{}' is neither a command ({}) nor a model: {}", words[0],
                           commands, model.error().message));
}

int run(int argc, char** argv) {
  CLI::App app("minfer runs large language models on this machine.", "minfer");
  app.set_version_flag("--version", std::string("minfer ") + MINFER_VERSION);
  app.require_subcommand(1);
  app.footer(kExamples);
  auto exit = std::make_shared<int>(kOk);
  add_commands(app, exit);

  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kBadArguments;
  }
  if (const int code = insert_run(app, words); code != kOk) return code;
  if (is_command(app, words[0])) prepare_words(*app.get_subcommand(words[0]), words);
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // the order CLI11 takes them in
    app.parse(std::move(reversed));
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e) == 0 ? kOk : kBadArguments;
  } catch (const CLI::ParseError& e) {
    const auto chosen = app.get_subcommands();
    std::fprintf(stderr, "minfer: %s\nminfer %s--help explains the arguments.\n", for_terminal(e.what()).c_str(),
                 chosen.empty() ? "" : (chosen[0]->get_name() + " ").c_str());
    return kBadArguments;
  }
  return *exit;
}

// A standard stream that is closed would lend its number to the next file that is opened, and what is printed would go
// there. Here its reads and writes fail, as they should.
void hold_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0) [[maybe_unused]]
      const int held = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// An answer that did not reach its reader is no success.
int check_output(int code) {
  std::cout.flush();  // CLI11 prints the help there
  const bool failed_before = std::ferror(stdout) != 0 || !std::cout;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return code;
  std::fprintf(stderr, "minfer: writing to standard output failed%s%s\n", errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  return code == kOk ? kFailed : code;
}

}  // namespace
}  // namespace minfer::cli

int main(int argc, char** argv) {
  try {
    minfer::cli::hold_standard_streams();
    minfer::cli::set_up_interrupts();
    minfer::prefer_short_slices();  // this thread is the first of every pool
    return minfer::cli::check_output(minfer::cli::run(argc, argv));
  } catch (const std::bad_alloc&) {
    std::fputs("minfer: out of memory\n", stderr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "minfer: unexpected: %s\n", e.what());
  }
  return minfer::cli::kFailed;
}
