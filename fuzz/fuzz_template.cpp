// Layers: chat
// Fuzzes the template engine. The input is a template's source, a zero byte, and the JSON of a message list (absent: a
// fixed conversation). Whatever comes in must end in a rendering or an error, within small budgets; what was rendered
// is checked for provenance: text that only a message holds never shows up as the template's own.
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "chat/chat_template.h"
#include "chat/json.h"

namespace {

using namespace minfer;

// Not to be had from a template's source without its bytes: sources that hold them are not checked.
constexpr std::string_view kSecret = "\x7fq\x7f";

void require(bool ok) {
  if (!ok) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const std::string source(input.substr(0, zero));
  const auto parsed = chat::ChatTemplate::parse(source);
  if (!parsed.ok()) {
    require(!parsed.error().message.empty());
    return 0;
  }
  chat::RenderOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  options.now = std::tm{};
  options.limits.steps = 200'000;
  options.limits.bytes = uint64_t{16} << 20;

  chat::Value messages;
  if (zero != input.npos) {
    auto json = chat::parse_json(input.substr(zero + 1));
    if (!json.ok()) return 0;
    messages = *json;
    (void)chat::messages_from_value(messages);
  } else {
    const std::string text = "Hi " + std::string(kSecret);
    messages =
        chat::Value::list({chat::Message::make("system", text).value(), chat::Message::make("user", text).value(),
                           chat::Message::make("assistant", text).value()});
    options.tools = chat::Value::list({chat::Value::object({{"name", chat::Value::string(text)}})});
  }
  const auto rendered = parsed->render(messages, options);
  if (!rendered.ok()) return 0;
  bool last = false, any = false;
  for (const chat::Segment& s : rendered->segments) {
    require(!s.text.empty());
    require(!any || s.from_template != last);
    last = s.from_template;
    any = true;
    if (zero == input.npos && s.from_template && source.find('\x7f') == source.npos &&
        source.find('\\') == source.npos && source.find('%') == source.npos) {
      require(s.text.find(kSecret) == std::string::npos);
    }
  }
  return 0;
}
