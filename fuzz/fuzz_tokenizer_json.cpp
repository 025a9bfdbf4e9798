// Layers: tokenizer
// Fuzzes the reader of tokenizer.json. The input is a JSON text, a zero byte, and a text to encode (absent: a fixed
// one). Whatever comes in must end in an error or in a tokenizer whose ids decode.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tokenizer/stream_decode.h"
#include "tokenizer/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace minfer;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const std::string_view text =
      zero == std::string_view::npos ? "the <s> cat\n 12 \xc3\xa9\xff" : input.substr(zero + 1);
  const auto t = tokenizer_from_json(input.substr(0, zero));
  if (!t.ok()) return 0;
  for (const bool parse : {false, true}) {
    const auto ids = t->encode(text, {.add_special = true, .parse_special = parse});
    if (!ids.ok()) continue;
    const auto back = t->decode(*ids, {.show_control = true});
    if (!back.ok()) std::abort();
    StreamDecoder stream(*t, {.show_control = true, .strip_space_prefix = true});
    std::string streamed;
    for (const TokenId id : *ids) streamed += *stream.push(id);
    streamed += stream.finish();
    if (streamed != utf8_replace(*back)) std::abort();
  }
  return 0;
}
