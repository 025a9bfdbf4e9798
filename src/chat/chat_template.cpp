// Parsing, the variables of a render, and the cut of its text into segments.
#include "chat/chat_template.h"

#include <ctime>
#include <new>
#include <stdexcept>

#include "chat/continue_message.h"
#include "chat/jinja/interp.h"
#include "chat/jinja/parser.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat {

struct ChatTemplate::Impl {
  std::string source;
  jinja::Body body;
};

namespace {

// Roles count as the template's own words ("<|" + role + "|>" must become one control token), but only these: a role
// of the client's invention stays data.
constexpr std::string_view kRoles[] = {"system", "developer", "user",    "assistant",
                                       "tool",   "function",  "ipython", "model"};

// Texts that open a block of thinking when a prompt ends with them.
constexpr std::string_view kThinkingTags[] = {
    "<think>",      "<thinking>", "<thought>",   "<|START_THINKING|>",
    "<seed:think>", "[THINK]",    "<reasoning>", "Here are my reasoning steps:"};

Error to_error(const jinja::Raised& raised) {
  if (raised.verbatim) return Error{raised.code, raised.message};
  if (raised.pos.line == 0) return make_error(raised.code, "[template] {}", raised.message);
  return make_error(raised.code, "[template] line {}, column {}: {}", raised.pos.line, raised.pos.column,
                    raised.message);
}

Value with_known_role(const Value& message) {
  const Value* role = message.find("role");
  if (role == nullptr || !role->is_string()) return message;
  for (std::string_view known : kRoles) {
    if (role->as_string() != known) continue;
    Dict copy = message.as_dict();
    copy.set(Value::string("role"), Value::string(std::string(known), true));
    return Value::dict(std::move(copy));
  }
  return message;
}

std::tm local_time() {
  const std::time_t seconds = std::time(nullptr);
  std::tm out{};
  localtime_r(&seconds, &out);
  return out;
}

bool ends_in_thinking(const Segment& last) {
  if (!last.from_template) return false;
  const size_t end = last.text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return false;
  const std::string_view text = std::string_view(last.text).substr(0, end + 1);
  for (std::string_view tag : kThinkingTags) {
    if (text.ends_with(tag)) return true;
  }
  return false;
}

Rendered cut(const Text& text, const std::string& bos_token) {
  Rendered out;
  text.for_each_run([&](std::string_view piece, bool markup) { out.segments.push_back({std::string(piece), markup}); });
  if (!out.segments.empty()) {
    const Segment& first = out.segments.front();
    out.starts_with_bos = first.from_template && !bos_token.empty() && first.text.starts_with(bos_token);
    out.thinking_open = ends_in_thinking(out.segments.back());
  }
  return out;
}

Status check_depth(const Value& v, std::string_view what) {
  if (v.depth() < kMaxValueDepth) return {};
  return make_error(ErrorCode::kInvalidArgument, "[template] {} is nested deeper than {} levels", what,
                    kMaxValueDepth - 1);
}

}  // namespace

std::string Rendered::text() const {
  std::string out;
  for (const Segment& s : segments) out += s.text;
  return out;
}

bool is_conversation_variable(std::string_view name) {
  for (const char* taken : {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token"}) {
    if (name == taken) return true;
  }
  return false;
}

Result<ChatTemplate> ChatTemplate::parse(std::string source) {
  if (source.empty()) return make_error(ErrorCode::kCorrupt, "[template] the chat template is empty");
  if (source.size() > kMaxSourceBytes) {
    return make_error(ErrorCode::kUnsupported, "[template] source has {} bytes, the limit is {}", source.size(),
                      kMaxSourceBytes);
  }
  if (!jinja::valid_utf8(source)) return make_error(ErrorCode::kCorrupt, "[template] source is not valid UTF-8");
  try {
    auto impl = std::make_shared<Impl>();
    impl->body = jinja::parse(source);
    impl->source = std::move(source);
    return ChatTemplate(std::move(impl));
  } catch (const jinja::Raised& raised) {
    return to_error(raised);
  }
}

const std::string& ChatTemplate::source() const { return impl_->source; }

Result<Rendered> ChatTemplate::render(const std::vector<Message>& messages, const RenderOptions& options) const {
  std::vector<Value> list;
  list.reserve(messages.size());
  for (const Message& m : messages) list.push_back(m.value());
  return render(Value::list(std::move(list)), options);
}

Result<Rendered> ChatTemplate::render(const Value& messages, const RenderOptions& options) const {
  MINFER_TRY(check_depth(messages, "the message list"));
  MINFER_TRY(check_depth(options.tools, "the tool list"));
  for (const auto& [name, value] : options.kwargs) MINFER_TRY(check_depth(value, "'" + name + "'"));
  Value list = messages;
  std::string continued;
  if (options.continue_final_message) {
    if (options.add_generation_prompt) {
      return make_error(ErrorCode::kInvalidArgument,
                        "[chat] continue_final_message and add_generation_prompt exclude each other: either the last "
                        "message goes on or a new one begins");
    }
    auto tagged = MINFER_TRY(tag_final_message(messages, options.continue_field, impl_->source));
    list = std::move(tagged.messages);
    continued = std::move(tagged.text);
  }
  if (list.is(Value::Kind::kList)) {
    std::vector<Value> known;
    known.reserve(list.items().size());
    for (const Value& m : list.items()) known.push_back(with_known_role(m));
    list = Value::list(std::move(known));
  }
  try {
    jinja::Interp in(options.limits.steps, options.limits.bytes, options.now ? *options.now : local_time());
    in.define("messages", list);
    in.define("tools", options.tools);
    in.define("documents", Value::none());
    in.define("add_generation_prompt", Value::boolean(options.add_generation_prompt));
    in.define("bos_token", Value::string(options.bos_token, true));
    in.define("eos_token", Value::string(options.eos_token, true));
    for (const auto& [name, value] : options.kwargs) in.define(name, value);
    try {
      const Text text = in.run(impl_->body);
      if (!options.continue_final_message) return cut(text, options.bos_token);
      Rendered out = cut(MINFER_TRY(cut_at_tag(text, continued)), options.bos_token);
      out.thinking_open = is_reasoning_field(options.continue_field) || opens_thinking(continued);
      return out;
    } catch (jinja::Raised& raised) {
      if (raised.pos.line == 0) raised.pos = in.pos();
      return to_error(raised);
    }
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kResourceExhausted, "[template] out of memory");
  } catch (const std::length_error&) {
    return make_error(ErrorCode::kResourceExhausted, "[template] a string would be too long");
  }
}

Error missing_template(std::string_view model) {
  return make_error(ErrorCode::kNotFound,
                    "[template] model '{}' carries no chat template; give one with --template FILE|NAME", model);
}

}  // namespace minfer::chat
