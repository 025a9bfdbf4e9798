// Conversation: the messages of a chat and which part of them the model still sees.
// Branches: conversations by name, and how they are kept in a file.
// Errors:  a file that is no conversation; messages that do not fit the context. After an error nothing has changed.
// Threads: one owner.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "chat/message.h"
#include "minfer/session.h"
#include "prompt.h"

namespace minfer::cli {

// How a conversation is fitted into the context.
struct ContextRule {
  Overflow overflow = Overflow::kError;
  int32_t n_ctx = 0;
  // Positions to leave free for an answer, and how many more once something must go: so that it is not cut, and read
  // again, at every turn.
  int32_t room = 1, slack = 1;
};

struct FittedPrompt {
  std::vector<int32_t> ids;
  size_t messages_dropped = 0, ids_dropped = 0;  // left out, and were not in the prompt before
};

class Conversation {
 public:
  // A system message, unless `system` is empty, that stands before all others and survives clear().
  explicit Conversation(std::string system = "") : system_(std::move(system)) { clear(); }

  void clear();
  void add(std::string role, std::string content) {
    messages_.push_back(chat::Message::make(std::move(role), std::move(content)));
  }
  void remove_last() { messages_.pop_back(); }
  bool last_is(const char* role) const { return !messages_.empty() && messages_.back().role() == role; }
  size_t size() const { return messages_.size(); }

  // A turn begins at each message of the user; messages before the first one are of no turn.
  size_t n_turns() const { return turn_starts().size(); }
  const chat::Message& turn(size_t i) const { return messages_[turn_starts()[i]]; }  // its message of the user
  void cut(size_t n_turns);  // keeps the first n_turns turns, and what is before them

  // {"messages": [...], "left_out": n}
  chat::Dict dict() const;
  // Replaces everything. A system message given by flag replaces the value's.
  Status set(const chat::Value& value);

  // All ids of the conversation, in at most n_ctx - room positions; the last turn alone may use some of the room. What
  // does not fit is an error, or the rule says what is left out: whole turns, or the oldest ids after those that every
  // conversation with this system message begins with; never a part of the last turn.
  // Errors: kOutOfRange, with what can be done; what the template says.
  Result<FittedPrompt> prompt(const Model& model, const PromptOptions& options, const ContextRule& rule);

 private:
  size_t n_system() const { return !messages_.empty() && messages_[0].role() == "system" ? 1 : 0; }
  std::vector<size_t> turn_starts() const;
  std::vector<chat::Message> seen_from(size_t first) const;
  Error too_long(const Model& model, const PromptOptions& options, int64_t n, const ContextRule& rule) const;
  Result<FittedPrompt> without_turns(const Model& model, const PromptOptions& options, const ContextRule& rule);
  Result<FittedPrompt> shifted(const Model& model, const PromptOptions& options, const ContextRule& rule);

  std::string system_;
  std::vector<chat::Message> messages_;
  size_t first_ = 0;                      // the oldest message after the system message that the model still sees
  size_t ids_shifted_ = 0;                // ids left out after those that stay
  size_t first_told_ = 0, ids_told_ = 0;  // as they were in the last prompt: what is left out beyond them is new
};

// Requires a name of valid_branch_name() wherever one is given.
class Branches {
 public:
  static constexpr size_t kMax = 256;
  explicit Branches(std::string system) : system_(std::move(system)) { clear(); }

  Conversation& current() { return branches_.find(name_)->second; }
  const std::string& name() const { return name_; }
  const std::map<std::string, Conversation>& all() const { return branches_; }
  bool has(const std::string& name) const { return branches_.count(name) != 0; }
  // Goes on in a copy of the current one. Errors: the name is taken, or is none; there are kMax.
  Status branch(const std::string& name);
  Status go_to(const std::string& name);  // errors: there is no such branch

  // {"messages": [...]}, and where there is more than the one branch, its name and the others. By replace_file().
  // `locked`: as there.
  Status save(const std::string& path, int* locked = nullptr) const;
  // Replaces everything.
  Status load(const std::string& path);

 private:
  void clear();
  std::string system_, name_;
  std::map<std::string, Conversation> branches_;
};

}  // namespace minfer::cli
