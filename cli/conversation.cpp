// Messages of a chat.
#include "conversation.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "chat/json.h"
#include "common.h"
#include "tokenizer/stream_decode.h"

namespace minfer::cli {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;  // bounds what a conversation's file may make us read
constexpr size_t kMaxNameBytes = 64;
constexpr const char* kFirstBranch = "main";

size_t common_prefix(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

Status check_name(const std::string& name) {
  const bool plain = std::none_of(name.begin(), name.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u <= 0x20 || u == 0x7f;
  });
  if (!name.empty() && name.size() <= kMaxNameBytes && plain && utf8_replace(name) == name) return {};
  return make_error(ErrorCode::kInvalidArgument, "branch '{}': expected a name of 1 to {} bytes without white space",
                    name, kMaxNameBytes);
}

}  // namespace

// --- Conversation ---------------------------------------------------------------------------------------------------
void Conversation::clear() {
  messages_.clear();
  if (!system_.empty()) add("system", system_);
  first_ = first_told_ = n_system();
  ids_shifted_ = ids_told_ = 0;
}

std::vector<size_t> Conversation::turn_starts() const {
  std::vector<size_t> starts;
  for (size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].role() == "user") starts.push_back(i);
  }
  return starts;
}

void Conversation::cut(size_t n_turns) {
  const auto starts = turn_starts();
  if (n_turns >= starts.size()) return;
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(starts[n_turns]), messages_.end());
  first_ = n_system();  // what was left out may have room again
  ids_shifted_ = 0;
}

chat::Dict Conversation::dict() const {
  std::vector<chat::Value> list;
  for (const auto& m : messages_) list.push_back(m.value());
  chat::Dict out;
  out.set("messages", chat::Value::list(std::move(list)));
  if (first_ > n_system()) out.set("left_out", chat::Value::integer(static_cast<int64_t>(first_ - n_system())));
  return out;
}

Status Conversation::set(const chat::Value& value) {
  auto messages = MINFER_TRY(chat::messages_from_value(value));
  if (!system_.empty()) {
    if (!messages.empty() && messages[0].role() == "system") messages.erase(messages.begin());
    messages.insert(messages.begin(), chat::Message::make("system", system_));
  }
  size_t left_out = 0;
  if (const chat::Value* n = value.find("left_out")) {
    if (!n->is(chat::Value::Kind::kInt) || n->as_int() < 0 || n->as_int() > static_cast<int64_t>(messages.size()))
      return make_error(ErrorCode::kInvalidArgument, "left_out: expected how many of the {} messages are left out",
                        messages.size());
    left_out = static_cast<size_t>(n->as_int());
  }
  messages_ = std::move(messages);
  first_ = first_told_ = std::min(n_system() + left_out, messages_.size());
  ids_shifted_ = ids_told_ = 0;
  return {};
}

std::vector<chat::Message> Conversation::seen_from(size_t first) const {
  std::vector<chat::Message> seen(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(n_system()));
  seen.insert(seen.end(), messages_.begin() + static_cast<std::ptrdiff_t>(first), messages_.end());
  return seen;
}

Error Conversation::too_long(const Model& model, const PromptOptions& options, int64_t n,
                             const ContextRule& rule) const {
  const int32_t n_train = model.hparams().n_ctx_train;
  const std::string longer =
      rule.n_ctx < n_train ? fmt::format("; a longer --ctx may help (the model allows {})", n_train) : std::string();
  if (n_system() > 0) {  // whose fault it is: hardly any message has room beside this one
    std::vector<chat::Message> shortest = seen_from(messages_.size());
    shortest.push_back(chat::Message::make("user", "0"));
    const auto ids = chat_ids(model, shortest, options);
    if (ids.ok() && ids->size() >= static_cast<size_t>(rule.n_ctx)) {
      return make_error(ErrorCode::kOutOfRange,
                        "the system message is too long: with a message of one letter and the template around them {} "
                        "tokens, the context has {} positions{}",
                        ids->size(), rule.n_ctx, longer);
    }
  }
  if (n_turns() <= 1 || rule.overflow != Overflow::kError) {
    return make_error(ErrorCode::kOutOfRange,
                      "the message is too long: with the template around it {} tokens, the context has {} positions{}",
                      n, rule.n_ctx, longer);
  }
  return make_error(ErrorCode::kOutOfRange,
                    "the context is full: the conversation has {} tokens, the context {} positions. /undo, /edit or "
                    "/clear make room; --overflow truncate-oldest-turns or shift leaves out what is oldest{}",
                    n, rule.n_ctx, longer);
}

Result<FittedPrompt> Conversation::prompt(const Model& model, const PromptOptions& options, const ContextRule& rule) {
  switch (rule.overflow) {
    case Overflow::kTruncateOldestTurns: return without_turns(model, options, rule);
    case Overflow::kShift: return shifted(model, options, rule);
    case Overflow::kError: break;
  }
  FittedPrompt out;
  out.ids = MINFER_TRY(chat_ids(model, seen_from(n_system()), options));
  const auto n = static_cast<int64_t>(out.ids.size());
  if (n >= rule.n_ctx) return too_long(model, options, n, rule);
  return out;
}

Result<FittedPrompt> Conversation::without_turns(const Model& model, const PromptOptions& options,
                                                 const ContextRule& rule) {
  size_t first = first_;
  int64_t room = rule.room;
  for (;;) {
    FittedPrompt out;
    out.ids = MINFER_TRY(chat_ids(model, seen_from(first), options));
    const auto n = static_cast<int64_t>(out.ids.size());
    // The next turn begins at the next message of the user.
    size_t next = first + 1;
    while (next < messages_.size() && messages_[next].role() != "user") ++next;
    const bool last_turn = next >= messages_.size();
    if (n + room <= rule.n_ctx || (last_turn && n < rule.n_ctx)) {
      out.messages_dropped = first - std::min(first, first_told_);
      first_ = first_told_ = first;
      return out;
    }
    if (last_turn) return too_long(model, options, n, rule);
    first = next;
    room = int64_t{rule.room} + rule.slack;
  }
}

Result<FittedPrompt> Conversation::shifted(const Model& model, const PromptOptions& options, const ContextRule& rule) {
  FittedPrompt out;
  out.ids = MINFER_TRY(chat_ids(model, seen_from(n_system()), options));
  const auto starts = turn_starts();
  const size_t whole = out.ids.size(), n_ctx = static_cast<size_t>(rule.n_ctx);
  const auto room = static_cast<size_t>(rule.room), slack = static_cast<size_t>(rule.slack);
  size_t shifted = ids_shifted_;
  if (shifted == 0 && whole + room <= n_ctx) {
    ids_told_ = 0;
    return out;
  }
  // What every conversation with this system message begins with stays, and so does the last turn.
  std::vector<chat::Message> other = seen_from(messages_.size());
  const bool begins_with_0 = !starts.empty() && messages_[starts[0]].content_text().starts_with("0");
  other.push_back(chat::Message::make("user", begins_with_0 ? "1" : "0"));
  const size_t fixed = common_prefix(out.ids, MINFER_TRY(chat_ids(model, other, options)));
  const size_t last = starts.empty() ? n_system() : starts.back();
  const size_t n_last = MINFER_TRY(chat_ids(model, seen_from(last), options)).size();
  const size_t most = whole - std::min(whole, std::max(fixed, n_last));
  shifted = std::min(shifted, most);
  if (whole - shifted + room > n_ctx) shifted = std::min(most, whole + room + slack - n_ctx);
  if (whole - shifted >= n_ctx) return too_long(model, options, static_cast<int64_t>(whole - shifted), rule);
  out.ids.erase(out.ids.begin() + static_cast<std::ptrdiff_t>(fixed),
                out.ids.begin() + static_cast<std::ptrdiff_t>(fixed + shifted));
  out.ids_dropped = shifted - std::min(shifted, ids_told_);
  ids_shifted_ = ids_told_ = shifted;
  return out;
}

// --- Branches -------------------------------------------------------------------------------------------------------
void Branches::clear() {
  branches_.clear();
  name_ = kFirstBranch;
  branches_.emplace(name_, Conversation(system_));
}

Status Branches::branch(const std::string& name) {
  MINFER_TRY(check_name(name));
  if (has(name))
    return make_error(ErrorCode::kInvalidArgument, "branch '{}' is there already; /switch goes to it", name);
  if (branches_.size() >= kMax)
    return make_error(ErrorCode::kOutOfRange, "there are {} branches, no more are kept", kMax);
  branches_.emplace(name, current());
  name_ = name;
  return {};
}

Status Branches::go_to(const std::string& name) {
  if (!has(name)) return make_error(ErrorCode::kNotFound, "there is no branch '{}'; /branches lists them", name);
  name_ = name;
  return {};
}

Status Branches::save(const std::string& path, int* locked) const {
  chat::Dict out = branches_.find(name_)->second.dict();
  if (branches_.size() > 1 || name_ != kFirstBranch) {
    out.set("branch", chat::Value::string(name_));
    chat::Dict others;
    for (const auto& [name, talk] : branches_) {
      if (name != name_) others.set(name, chat::Value::dict(talk.dict()));
    }
    out.set("branches", chat::Value::dict(std::move(others)));
  }
  const std::string text = MINFER_TRY(chat::dump_json(chat::Value::dict(std::move(out)))) + "\n";
  constexpr unsigned kOwnerOnly = 0600;  // what was said is nobody else's business
  return replace_file(path, text, kOwnerOnly, locked);
}

Status Branches::load(const std::string& path) {
  const std::string text = MINFER_TRY(read_regular_file(path, kMaxFileBytes));
  const auto read = [&]() -> Status {
    const chat::Value file = MINFER_TRY(chat::parse_json(text, chat::TwiceSaid::kRefuse));
    Branches loaded(system_);
    if (const chat::Value* name = file.find("branch")) {
      if (!name->is_string()) return make_error(ErrorCode::kInvalidArgument, "branch: expected a name");
      MINFER_TRY(check_name(name->as_string()));
      loaded.branches_.clear();
      loaded.name_ = name->as_string();
      loaded.branches_.emplace(loaded.name_, Conversation(system_));
    }
    MINFER_TRY(loaded.current().set(file));
    if (const chat::Value* others = file.find("branches")) {
      if (!others->is_dict()) return make_error(ErrorCode::kInvalidArgument, "branches: expected an object");
      for (const auto& [name, value] : others->as_dict().entries()) {
        const std::string& key = name.as_string();  // JSON has no others
        MINFER_TRY(check_name(key));
        Conversation talk(system_);
        MINFER_TRY_CTX(talk.set(value), "branch '" + key + "'");
        if (loaded.branches_.size() >= kMax || !loaded.branches_.emplace(key, std::move(talk)).second)
          return make_error(ErrorCode::kInvalidArgument, "branches: expected at most {}, each once", kMax);
      }
    }
    *this = std::move(loaded);
    return {};
  };
  if (Status s = read(); !s.ok()) {
    Error e = fault_of_file(s.error());
    e.message = "'" + path + "': " + e.message;
    return e;
  }
  return {};
}

}  // namespace minfer::cli
