// A model's chat template: parsed once, rendered for each conversation, byte for byte as Hugging Face's
// apply_chat_template (Jinja2 3.1 with trim_blocks, lstrip_blocks, loopcontrols, the immutable sandbox) does.
// The result is cut into segments by origin: only the template's own text may be read as special tokens.
// Errors:  "[template] line 3, column 7: ..."; what raise_exception says is the message alone, with
//          kInvalidArgument (a server answers 400 with it). Steps, bytes and nesting are bounded (Limits).
// Threads: a ChatTemplate is immutable; render may be called from many threads at once.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chat/message.h"
#include "chat/value.h"

namespace minfer::chat {

// Longer template sources are refused; the longest real one has 40 KB.
inline constexpr size_t kMaxSourceBytes = size_t{1} << 20;

struct Limits {
  // Long conversations with many tools take some 100,000 steps; a step is about 100 ns.
  uint64_t steps = 20'000'000;
  // Bytes of all strings and containers made while rendering, dead ones included; the output is one of them.
  uint64_t bytes = uint64_t{512} << 20;
};

struct Segment {
  std::string text;
  bool from_template = false;  // true: special tokens may be parsed here; false: ordinary text
};

struct Rendered {
  std::vector<Segment> segments;  // neighbours differ in origin; none is empty
  // The first segment is markup that begins with bos_token: the encoder must not add a second one.
  bool starts_with_bos = false;
  // The prompt ends inside a thinking block, which the template opened ("<think>\n") or the message that is continued:
  // the answer starts there.
  bool thinking_open = false;

  std::string text() const;  // all segments joined: what Jinja2 gives
};

struct RenderOptions {
  bool add_generation_prompt = true;
  // The rendering ends with the last message's text, which the model goes on with (continue_message.h); excludes
  // add_generation_prompt. `continue_field`: which field of the message that is.
  bool continue_final_message = false;
  std::string continue_field = "content";
  Value tools;                                        // list of definitions or none
  std::vector<std::pair<std::string, Value>> kwargs;  // further variables: enable_thinking, documents, ...
  std::string bos_token;                              // these two count as markup
  std::string eos_token;
  std::optional<std::tm> now;  // for strftime_now; absent: the local time
  Limits limits;
};

// Whether a template's variable of this name comes from the conversation and the model: no kwarg may take its place.
bool is_conversation_variable(std::string_view name);

class ChatTemplate {
 public:
  // `source` is Jinja text; an empty one is the error a model without a template gives (see missing_template).
  static Result<ChatTemplate> parse(std::string source);

  Result<Rendered> render(const std::vector<Message>& messages, const RenderOptions& options) const;
  // The same with the message list as a raw value (a list of dicts).
  Result<Rendered> render(const Value& messages, const RenderOptions& options) const;

  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// What to say when a model carries no template: names the model and offers --template FILE|NAME. Never a silent guess.
Error missing_template(std::string_view model);

}  // namespace minfer::chat
