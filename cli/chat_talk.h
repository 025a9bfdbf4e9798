// ChatTalk: a conversation at the keyboard or from a pipe: its commands, its answers, its files.
// Errors:  are printed, and the conversation goes on; begin() and what ends it return them.
// Threads: one; answers are printed from the engine's thread while it waits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common.h"
#include "conversation.h"
#include "minfer/session.h"
#include "session_lock.h"
#include "stats.h"

namespace minfer::cli {

extern const char* const kChatHelp;  // its commands, a line each

struct TalkOptions {
  std::string system, session;
  int predict = -1;
  bool stats = false;
  Overflow overflow = Overflow::kError;
  SamplingParams sampling;
  PromptOptions prompt;
};

class ChatTalk {
 public:
  ChatTalk(TalkOptions options, Engine& engine, StepTimes& times);

  // Reads the session's files where they are, and tries to write the conversation.
  Status begin();
  // Reads and answers until the end. Returns the exit code.
  int loop();
  // Writes K and V beside the session's file. What prevents that is only said: they can be computed again.
  void end();

 private:
  void say(const std::string& text);
  void failed(const Error& error);

  bool command(const std::string& line);  // false: the end
  Status run_command(const std::string& name, const std::string& argument);
  Status regenerate();
  Status edit(const std::string& argument);
  void list_turns();
  void list_branches();
  Status load(const std::string& path);

  Status respond(Conversation before);  // answers the last message; without an answer all is as in `before`
  Result<bool> answer();                // false: stopped before there was any text
  Status keep();                        // writes the session's file
  Status save(const std::string& path);
  Conversation& talk() { return branches_.current(); }
  ChatSession& session();  // of the current branch
  std::string kv_path() const { return options_.session + ".kv"; }

  const TalkOptions options_;
  Engine& engine_;
  StepTimes& times_;
  Branches branches_;
  std::optional<SessionLock> lock_;              // of the session's file
  std::map<std::string, ChatSession> sessions_;  // by branch
  std::vector<int32_t> kv_ids_;                  // those whose K and V the file holds
  uint64_t n_regenerated_ = 0;
  int n_failed_ = 0;
  const bool terminal_;
};

}  // namespace minfer::cli
