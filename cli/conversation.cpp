// Messages of a chat.
#include "conversation.h"

#include "base/error.h"
#include "base/file.h"
#include "chat/json.h"
#include "common.h"

namespace minfer::cli {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;  // bounds what a conversation's file may make us read

}  // namespace

void Conversation::clear() {
  messages_.clear();
  if (!system_.empty()) add("system", system_);
  first_ = n_system();
}

Status Conversation::save(const std::string& path) const {
  std::vector<chat::Value> list;
  for (const auto& m : messages_) list.push_back(m.value());
  const std::string text =
      MINFER_TRY(chat::dump_json(chat::Value::object({{"messages", chat::Value::list(std::move(list))}}))) + "\n";
  constexpr unsigned kOwnerOnly = 0600;  // what was said is nobody else's business
  return replace_file(path, text, kOwnerOnly);
}

Status Conversation::load(const std::string& path) {
  const std::string text = MINFER_TRY(read_regular_file(path, kMaxFileBytes));
  auto loaded = MINFER_TRY_CTX(of_file(chat::messages_from_json(text)), "'" + path + "'");
  messages_ = std::move(loaded);
  if (!system_.empty()) {
    if (n_system() > 0) messages_.erase(messages_.begin());
    messages_.insert(messages_.begin(), chat::Message::make("system", system_));
  }
  first_ = n_system();
  return {};
}

std::vector<chat::Message> Conversation::seen_from(size_t first) const {
  std::vector<chat::Message> seen(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(n_system()));
  seen.insert(seen.end(), messages_.begin() + static_cast<std::ptrdiff_t>(first), messages_.end());
  return seen;
}

Result<std::vector<int32_t>> Conversation::prompt(const Model& model, const PromptOptions& options, int32_t n_ctx,
                                                  int32_t room, size_t* dropped) {
  size_t first = first_;
  *dropped = 0;
  for (;;) {
    auto ids = MINFER_TRY(chat_ids(model, seen_from(first), options));
    const auto n = static_cast<int64_t>(ids.size());
    // The next turn begins at the next message of the user.
    size_t next = first + 1;
    while (next < messages_.size() && messages_[next].role() != "user") ++next;
    const bool last_turn = next >= messages_.size();
    if (n + room <= n_ctx || (last_turn && n < n_ctx)) {
      *dropped = first - first_;
      first_ = first;
      return ids;
    }
    if (last_turn) {
      return make_error(ErrorCode::kOutOfRange,
                        "the message is too long: with the template around it {} tokens, the context has {} positions",
                        n, n_ctx);
    }
    first = next;
  }
}

}  // namespace minfer::cli
