// Each turn renders all messages through the template; what the cache holds of the result stays, so that only new text
// is computed.
#include "chat_talk.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "line_reader.h"
#include "options.h"
#include "tokenizer/stream_decode.h"

namespace minfer::cli {
namespace {

constexpr size_t kMaxLineBytes = size_t{16} << 20;  // far beyond any context

// The beginning of a text, on one line.
std::string in_short(const std::string& text) {
  constexpr size_t kMost = 60;
  std::string line = text.substr(0, text.find('\n'));
  size_t n = std::min(line.size(), kMost);
  while (n > 0 && n < line.size() && (static_cast<unsigned char>(line[n]) & 0xc0) == 0x80) --n;
  return n < text.size() ? line.substr(0, n) + "..." : line;
}

// Whether `path` is no file, or one that a session may replace. What is no regular file is never waited for.
bool may_replace(const std::string& path) {
  std::array<std::byte, 8> begin{};
  const auto n = read_regular_file(path, begin);
  if (!n.ok()) return n.error().code == ErrorCode::kNotFound;
  return *n == begin.size() && std::memcmp(begin.data(), "minferss", begin.size()) == 0;
}

}  // namespace

const char* const kChatHelp =
    "  /help           this list\n"
    "  /regen          answer the last message again\n"
    "  /undo           forget the last message and its answer\n"
    "  /edit N TEXT    put TEXT in the place of message N, forget what follows, answer\n"
    "  /turns          list your messages with their numbers\n"
    "  /clear          begin anew\n"
    "  /branch NAME    go on in a copy; the conversation as it is stays in its own branch\n"
    "  /switch NAME    go to another branch\n"
    "  /branches       list them\n"
    "  /save FILE      write the conversation as JSON\n"
    "  /load FILE      go on with a conversation from a file\n"
    "  /exit           end (so does Ctrl-D; Ctrl-C stops an answer)\n"
    "  //text          a message that begins with a slash\n";

ChatTalk::ChatTalk(TalkOptions options, Engine& engine, StepTimes& times)
    : options_(std::move(options)),
      engine_(engine),
      times_(times),
      branches_(options_.system),
      terminal_(isatty(STDIN_FILENO) != 0) {}

void ChatTalk::say(const std::string& text) { std::fprintf(stderr, "minfer: %s\n", for_terminal(text).c_str()); }

void ChatTalk::failed(const Error& error) {
  report(error);
  ++n_failed_;
}

ChatSession& ChatTalk::session() {
  // The conversation decides what fits; here a single free position is enough.
  return sessions_.try_emplace(branches_.name(), engine_, std::vector<int32_t>(), SessionOptions{.room = 1})
      .first->second;
}

Status ChatTalk::load(const std::string& path) {
  MINFER_TRY(branches_.load(path));
  sessions_.clear();
  say(fmt::format("going on with {} messages of {}", talk().size(), path));
  return {};
}

Status ChatTalk::keep() {
  if (options_.session.empty()) return {};
  MINFER_TRY(lock_->check());
  int fd = -1;
  MINFER_TRY(branches_.save(options_.session, &fd));
  lock_->replaced(fd);
  return {};
}

Status ChatTalk::save(const std::string& path) {
  if (lock_ && lock_->is(path)) return keep();
  MINFER_TRY(check_replaceable(path));
  std::error_code ec;
  if (std::filesystem::exists(path, ec)) {
    const Status ours = Branches(options_.system).load(path);
    if (!ours.ok()) {
      return make_error(ErrorCode::kInvalidArgument, "/save: '{}' is there and holds no conversation, so it stays: {}",
                        path, ours.error().message);
    }
  }
  return branches_.save(path);
}

Status ChatTalk::begin() {
  if (!options_.session.empty()) {
    lock_.emplace(MINFER_TRY_CTX(SessionLock::take(options_.session), "--session"));
    std::error_code ec;
    if (!lock_->made() && std::filesystem::exists(options_.session, ec)) {
      MINFER_TRY_CTX(load(options_.session), "--session");
      if (std::filesystem::exists(kv_path(), ec)) {
        if (const Status read = session().load(kv_path()); !read.ok())
          say(fmt::format("notice: K and V of the conversation are computed again: {}", read.error().message));
        kv_ids_ = session().ids();
      }
    }
    MINFER_TRY_CTX(keep(), "--session");  // now, not after the first answer
  }
  if (terminal_)
    say(fmt::format("{}, context of {} positions; /help for commands", engine_.model().name(), engine_.n_ctx()));
  return {};
}

void ChatTalk::end() {
  if (options_.session.empty() || session().ids().empty() || session().ids() == kv_ids_) return;
  if (!lock_->check().ok()) return;  // the file holds another conversation now
  if (!may_replace(kv_path())) {
    say(fmt::format("notice: K and V are not kept: '{}' is another file", kv_path()));
  } else if (const Status saved = session().save(kv_path()); !saved.ok()) {
    say(fmt::format("notice: K and V are not kept: {}", saved.error().message));
  }
}

int ChatTalk::loop() {
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
    if (utf8_replace(line) != line) {  // it could be neither saved nor shown to a template
      failed(make_error(ErrorCode::kInvalidArgument, "the message is not UTF-8"));
      continue;
    }
    if (line[0] == '/' && !line.starts_with("//")) {
      if (!command(line)) break;
      continue;
    }
    const Conversation before = talk();
    talk().add("user", line.starts_with("//") ? line.substr(1) : line);
    if (const Status s = respond(before); !s.ok()) failed(s.error());
  }
  // A script learns from the exit code that a turn failed; a person has seen it.
  return n_failed_ > 0 && !terminal_ ? kFailed : kOk;
}

// --- commands -------------------------------------------------------------------------------------------------------
bool ChatTalk::command(const std::string& line) {
  const size_t space = line.find_first_of(" \t");
  const std::string name = line.substr(0, space);
  const size_t from = space == std::string::npos ? space : line.find_first_not_of(" \t", space);
  const std::string argument =
      from == std::string::npos ? "" : line.substr(from, line.find_last_not_of(" \t") + 1 - from);
  if (name == "/exit" || name == "/quit") return false;
  if (const Status s = run_command(name, argument); !s.ok()) failed(s.error());
  return true;
}

Status ChatTalk::run_command(const std::string& name, const std::string& argument) {
  const auto expect = [&](const char* what) -> Status {
    if (argument.empty()) return make_error(ErrorCode::kInvalidArgument, "{}: expected {}", name, what);
    return {};
  };
  if (name == "/help") {
    std::fputs(kChatHelp, stderr);
    return {};
  }
  if (name == "/clear") {
    talk().clear();
    return keep();
  }
  if (name == "/regen") return regenerate();
  if (name == "/undo") {
    if (talk().n_turns() == 0) return make_error(ErrorCode::kInvalidArgument, "/undo: there is no message to forget");
    talk().cut(talk().n_turns() - 1);
    return keep();
  }
  if (name == "/edit") return edit(argument);
  if (name == "/turns") {
    list_turns();
    return {};
  }
  if (name == "/branches") {
    list_branches();
    return {};
  }
  if (name == "/branch") {
    MINFER_TRY(expect("a name"));
    const ChatSession here = session();
    MINFER_TRY(branches_.branch(argument));
    sessions_.insert_or_assign(branches_.name(), here);
    return keep();
  }
  if (name == "/switch") {
    MINFER_TRY(expect("the name of a branch"));
    MINFER_TRY(branches_.go_to(argument));
    say(fmt::format("branch {}, {} messages", branches_.name(), talk().size()));
    return keep();
  }
  if (name == "/save") {
    MINFER_TRY(expect("a file name"));
    MINFER_TRY(save(argument));
    say(fmt::format("saved {} messages to {}", talk().size(), argument));
    return {};
  }
  if (name == "/load") {
    MINFER_TRY(expect("a file name"));
    MINFER_TRY(load(argument));
    return keep();
  }
  return make_error(ErrorCode::kInvalidArgument, "'{}' is no command here; there are:\n{}", name, kChatHelp);
}

void ChatTalk::list_turns() {
  for (size_t i = 0; i < talk().n_turns(); ++i)
    std::fprintf(stderr, "%4zu  %s\n", i + 1, for_terminal(in_short(talk().turn(i).content_text())).c_str());
}

void ChatTalk::list_branches() {
  for (const auto& [name, conversation] : branches_.all()) {
    const size_t n = conversation.n_turns();
    const std::string last = n > 0 ? in_short(conversation.turn(n - 1).content_text()) : "";
    std::fprintf(stderr, "%c %s  %zu messages  %s\n", name == branches_.name() ? '*' : ' ', for_terminal(name).c_str(),
                 conversation.size(), for_terminal(last).c_str());
  }
}

Status ChatTalk::regenerate() {
  if (!talk().last_is("assistant") && !talk().last_is("user"))
    return make_error(ErrorCode::kInvalidArgument, "/regen: there is no message to answer yet");
  const Conversation before = talk();
  if (talk().last_is("assistant")) talk().remove_last();
  ++n_regenerated_;
  return respond(before);
}

Status ChatTalk::edit(const std::string& argument) {
  const size_t space = std::min(argument.find_first_of(" \t"), argument.size());
  const size_t from = std::min(argument.find_first_not_of(" \t", space), argument.size());
  const auto n_turns = static_cast<int64_t>(talk().n_turns());
  if (n_turns == 0) return make_error(ErrorCode::kInvalidArgument, "/edit: there is no message yet");
  const auto n = parse_integer(argument.substr(0, space), {1, n_turns});
  if (!n.ok() || from == argument.size())
    return make_error(ErrorCode::kInvalidArgument, "/edit: expected the number of a message, 1 to {}, and a text",
                      n_turns);
  const Conversation before = talk();
  talk().cut(static_cast<size_t>(*n - 1));
  talk().add("user", argument.substr(from));
  return respond(before);
}

// --- answers --------------------------------------------------------------------------------------------------------
Status ChatTalk::respond(Conversation before) {
  const auto answered = answer();
  if (answered.ok() && *answered) return keep();
  talk() = std::move(before);
  if (!answered.ok()) return answered.error();
  return {};
}

Result<bool> ChatTalk::answer() {
  const int32_t n_ctx = engine_.n_ctx(), quarter = std::max(1, n_ctx / 4);
  ContextRule rule;
  rule.overflow = options_.overflow;
  rule.n_ctx = n_ctx;
  rule.room = options_.predict > 0 ? std::min(options_.predict, quarter) : quarter;
  rule.slack = quarter;
  const FittedPrompt fitted = MINFER_TRY(talk().prompt(engine_.model(), options_.prompt, rule));
  if (fitted.ids.empty())
    return make_error(ErrorCode::kInvalidArgument, "the template makes an empty prompt of this conversation");
  if (fitted.messages_dropped > 0)
    say(fmt::format("notice: the context is full; the {} oldest messages are left out from here on",
                    fitted.messages_dropped));
  if (fitted.ids_dropped > 0)
    say(fmt::format("notice: the context is full; the {} oldest tokens are left out from here on", fitted.ids_dropped));

  Request request;
  request.sampling = options_.sampling;
  request.sampling.seed += n_regenerated_;  // another answer, reproducible too
  const bool fits = static_cast<int64_t>(fitted.ids.size()) + std::max(options_.predict, 1) - 1 <= n_ctx;
  request.max_tokens = fits ? options_.predict : -1;  // what the context cannot hold ends where it is full
  std::optional<Progress> bar(std::in_place, "reading", "tokens");
  request.on_prompt = [&](int64_t done, int64_t total) {
    bar->update(done, total);
    if (done == total) bar.reset();
    return !interrupted();
  };
  request.on_event = [&](const Event& event) {
    times_.first_token();
    std::fwrite(event.text.data(), 1, event.text.size(), stdout);
    std::fflush(stdout);
    return !interrupted();
  };
  const ChatSession before = session();
  const int32_t kept = session().keep_prefix_of(fitted.ids);
  request.prompt.assign(fitted.ids.begin() + kept, fitted.ids.end());
  times_.begin();
  const auto reply = session().reply(std::move(request));
  clear_interrupt();  // Ctrl-C stopped this answer and nothing else
  bar.reset();
  if (!reply.ok()) {
    session() = before;
    return reply.error();
  }
  const Choice& choice = reply->response.choices[0];
  std::fputc('\n', stdout);
  std::fflush(stdout);
  if (options_.stats) std::fputs(make_stats(reply->response, times_, engine_).text().c_str(), stderr);
  if (choice.finish == FinishReason::kContext) say("notice: the context is full; the answer was cut there");
  if (choice.finish == FinishReason::kLength)
    say(fmt::format("notice: the answer was cut after {} tokens (--predict)", choice.ids.size()));
  if (choice.finish == FinishReason::kCancelled) say("stopped");
  if (choice.finish == FinishReason::kCancelled && choice.text.empty()) {
    session() = before;
    return false;
  }
  talk().add("assistant", choice.text);
  return true;
}

}  // namespace minfer::cli
