// Layers: tokenizer
// Fuzzes decoding: the input's bytes, two each, are ids (also ids that do not exist) for three small vocabularies. What
// is streamed is whole characters, and adds up to what decoding all at once gives.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/stream_decode.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace {

using namespace minfer;

void require(bool ok) {
  if (!ok) std::abort();
}

Tokenizer make(const char* model) {
  std::vector<std::string> texts = {"<unk>", "<s>", "</s>"};
  VocabData d;
  d.model = model;
  d.pre = "gpt-2";
  d.types = {2, 3, 3};
  for (int b = 0; b < 256; ++b) {
    constexpr const char* kHex = "0123456789ABCDEF";
    if (d.model == "gpt2")
      texts.emplace_back(byte_symbol(static_cast<unsigned char>(b)));
    else
      texts.push_back(std::string("<0x") + kHex[b >> 4] + kHex[b & 15] + ">");
    d.types.push_back(d.model == "gpt2" ? 1 : 6);
  }
  for (const char* t : {"", "a", "\xe2\x96\x81", "\xe2\x96\x81 a", "\xf0\x9f\x98\x80", "\xf0\x9f", "\x98\x80", "\xff",
                        "\xef\xbf\xbd", "##b"})
    texts.push_back(t), d.types.push_back(1);
  d.types.back() = 4;
  d.tokens.assign(texts.begin(), texts.end());
  if (d.model == "gpt2") d.merges = {"\xc4\xa0 \xc4\xa0"}, texts.push_back("\xc4\xa0\xc4\xa0"), d.types.push_back(1);
  d.tokens.assign(texts.begin(), texts.end());
  return std::move(Tokenizer::create(d)).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Tokenizer all[] = {make("gpt2"), make("llama"), make("t5")};
  for (const Tokenizer& t : all) {
    for (const bool show : {false, true}) {
      StreamDecoder stream(t, {.show_control = show, .strip_space_prefix = true});
      std::vector<TokenId> ids;
      std::string streamed;
      for (size_t i = 0; i + 1 < size; i += 2) {
        const auto id = static_cast<TokenId>(data[i] | (data[i + 1] & 0x83) << 8) - (data[i + 1] & 0x80 ? 70000 : 0);
        const auto part = stream.push(id);
        require(part.ok() == t.valid(id));
        if (!part.ok()) continue;
        require(utf8_replace(*part) == *part);
        streamed += *part;
        ids.push_back(id);
      }
      streamed += stream.finish();
      const auto whole = t.decode(ids, {.show_control = show});
      require(whole.ok() && utf8_replace(*whole) == streamed);
    }
  }
  return 0;
}
