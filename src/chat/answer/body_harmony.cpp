// gpt-oss: messages with a header (channel, recipient, type of content) before <|message|> and a token after them.
// Source:  OpenAI, "OpenAI harmony response format".
#include "chat/answer/bodies.h"

namespace minfer::chat::answer {

namespace {

constexpr size_t kMaxHeaderBytes = 1024;  // real ones have some 80

// The word after `before`; until white space or a special token.
std::string word_after(std::string_view header, std::string_view before) {
  const size_t at = header.find(before);
  if (at == header.npos) return {};
  const std::string_view rest = header.substr(at + before.size());
  return std::string(rest.substr(0, rest.find_first_of(" \t\r\n<")));
}

}  // namespace

// `marker` is <|start|>, <|channel|> or <|message|>, or "" where an answer begins with a recipient, since the prompt
// ends with "<|start|>assistant". Up to <|message|> this is a header; then a call's JSON, or text that the caller goes
// on with. "final" and "commentary" without a recipient are content, "analysis" is reasoning.
Read body_harmony(Machine& m, const CallSyntax& s, std::string_view marker) {
  std::string header(marker);
  if (marker.empty()) {
    header = " to=";
    const bool ok = co_await read_literal(m, header);
    if (!ok) co_return false;
  }
  while (!header.ends_with("<|message|>")) {
    const int c = co_await m.peek();
    if (c == kEnd || header.size() >= kMaxHeaderBytes) co_return false;
    m.take_raw();
    header += static_cast<char>(c);
  }
  const std::string channel = word_after(header, "<|channel|>");
  std::string recipient = word_after(header, "to=");
  if (recipient.empty() || recipient == "all") {
    m.silent();
    m.set_reasoning(m.options.parse_reasoning && channel == "analysis");
    co_return true;
  }
  if (recipient.starts_with("functions.")) recipient.erase(0, 10);
  if (!m.options.parse_calls) co_return false;
  bool ok = co_await read_call_arguments(m, std::move(recipient), "");
  if (!ok || !m.call_end()) co_return false;
  co_await read_space(m);
  const int c = co_await m.peek();
  if (c != '<') co_return true;
  ok = co_await read_literal(m, s.close);
  if (ok) m.silent();
  co_return ok;
}

}  // namespace minfer::chat::answer
