// Conversation: the messages of a chat, which of them the model still sees, and how they are kept in a file.
// Errors:  a file that is no conversation; a message that does not fit the context. After an error nothing has changed.
// Threads: one owner.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chat/message.h"
#include "prompt.h"

namespace minfer::cli {

class Conversation {
 public:
  // A system message, unless `system` is empty, that stands before all others and survives clear().
  explicit Conversation(std::string system) : system_(std::move(system)) { clear(); }

  void clear();
  void add(std::string role, std::string content) {
    messages_.push_back(chat::Message::make(std::move(role), std::move(content)));
  }
  void remove_last() { messages_.pop_back(); }
  bool last_is(const char* role) const { return !messages_.empty() && messages_.back().role() == role; }
  size_t size() const { return messages_.size(); }

  // {"messages": [...]}, by replace_file().
  Status save(const std::string& path) const;
  // Replaces everything. A system message given by flag replaces the file's.
  Status load(const std::string& path);

  // The prompt: all ids of the conversation, in at most n_ctx - room positions. Turns that do not fit are left out, the
  // oldest first; `dropped` receives how many messages were newly left out. The last turn alone may use some of the
  // room. Errors: the system message and the last turn need more than the context (kOutOfRange); what the template
  // says.
  Result<std::vector<int32_t>> prompt(const Model& model, const PromptOptions& options, int32_t n_ctx, int32_t room,
                                      size_t* dropped);

 private:
  size_t n_system() const { return !messages_.empty() && messages_[0].role() == "system" ? 1 : 0; }
  std::vector<chat::Message> seen_from(size_t first) const;

  std::string system_;
  std::vector<chat::Message> messages_;
  size_t first_ = 0;  // the oldest message after the system message that the model still sees
};

}  // namespace minfer::cli
