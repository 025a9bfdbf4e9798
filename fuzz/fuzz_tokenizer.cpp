// Layers: tokenizer
// Fuzzes vocabularies and texts. The input's first byte picks what is fuzzed:
//   odd:  the rest is a text for two small fixed vocabularies (byte-level BPE under every pre-tokenizer,
//   SentencePiece);
//         whatever comes out of encode() must decode to the text.
//   even: the rest describes a vocabulary: lines of "type score text", an empty line, merges, an empty line, a text.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pretokenize.h"
#include "tokenizer/stream_decode.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocabulary.h"

namespace {

using namespace minfer;

constexpr const char* kPres[] = {"default", "gpt-2",  "llama-bpe",    "qwen2",          "qwen35",   "gpt-4o",
                                 "smollm",  "falcon", "deepseek-llm", "deepseek-coder", "command-r"};

void require(bool ok) {
  if (!ok) std::abort();
}

VocabData byte_vocab(const char* pre, std::vector<std::string_view>& tokens, std::vector<int32_t>& types) {
  for (int b = 0; b < 256; ++b) tokens.push_back(byte_symbol(static_cast<unsigned char>(b)));
  for (const char* t : {"th", "the", "aa", "aaaa",
                        "\xc4\xa0"
                        "a",
                        "<|im_end|>", "<b>", "\n\n"})
    tokens.push_back(t);
  types.assign(tokens.size(), 1);
  types[261] = 3, types[262] = 4, types[263] = 4;
  VocabData d;
  d.model = "gpt2";
  d.pre = pre;
  d.tokens = tokens;
  d.types = types;
  d.merges = {"t h", "th e", "a a", "aa aa", "\xc4\xa0 a"};
  return d;
}

const std::vector<Tokenizer>& fixed() {
  static const std::vector<Tokenizer> all = [] {
    std::vector<Tokenizer> made;
    for (const char* pre : kPres) {
      std::vector<std::string_view> tokens;
      std::vector<int32_t> types;
      made.push_back(std::move(Tokenizer::create(byte_vocab(pre, tokens, types))).value());
    }
    std::vector<std::string> texts = {"<unk>", "<s>", "</s>"};
    VocabData d;
    d.model = "llama";
    d.types = {2, 3, 3};
    for (int b = 0; b < 256; ++b) {
      constexpr const char* kHex = "0123456789ABCDEF";
      texts.push_back(std::string("<0x") + kHex[b >> 4] + kHex[b & 15] + ">");
      d.types.push_back(6);
    }
    for (const char* t : {"\xe2\x96\x81", "a", "aa", "aaa",
                          "\xe2\x96\x81"
                          "a",
                          "ab", "b", "\t\t"})
      texts.push_back(t), d.types.push_back(1);
    d.types.back() = 4;
    d.types[texts.size() - 3] = 5;  // "ab" is unused
    for (size_t i = 0; i < texts.size(); ++i) d.scores.push_back(-static_cast<float>(i % 7));
    d.tokens.assign(texts.begin(), texts.end());
    made.push_back(std::move(Tokenizer::create(d)).value());
    return made;
  }();
  return all;
}

void fuzz_text(std::string_view text) {
  for (const Tokenizer& t : fixed()) {
    const auto ids = t.encode(text, {.add_special = false, .parse_special = true});
    require(ids.ok());
    const auto back = t.decode(*ids, {.show_control = true});
    require(back.ok());
    StreamDecoder stream(t, {.show_control = true, .strip_space_prefix = true});
    std::string streamed;
    for (const TokenId id : *ids) streamed += *stream.push(id);
    streamed += stream.finish();
    require(streamed == utf8_replace(*back));
    const bool exact = t.model() == "gpt2" ? !find_pretokenizer(t.pre())->nfc
                                           : text.find("\xe2\x96\x81") == std::string_view::npos &&
                                                 text.find('<') == std::string_view::npos;
    require(!exact || *back == text);
  }
}

std::string_view take_line(std::string_view& in) {
  const size_t end = in.find('\n');
  const std::string_view line = in.substr(0, end);
  in.remove_prefix(end == std::string_view::npos ? in.size() : end + 1);
  return line;
}

void fuzz_vocab(uint8_t pick, std::string_view in) {
  VocabData d;
  d.model = pick & 2 ? "llama" : "gpt2";
  d.pre = kPres[(pick >> 2) % std::size(kPres)];
  d.bos = static_cast<TokenId>(pick >> 4) - 1;
  d.unk = static_cast<TokenId>(pick >> 5) - 1;
  while (!in.empty()) {
    const std::string_view line = take_line(in);
    if (line.empty()) break;
    d.types.push_back(line[0] - '0');
    d.scores.push_back(line.size() > 1 ? static_cast<float>(line[1]) : 0.0f);
    d.tokens.push_back(line.substr(std::min<size_t>(2, line.size())));
  }
  while (!in.empty()) {
    const std::string_view line = take_line(in);
    if (line.empty()) break;
    d.merges.push_back(line);
  }
  const auto t = Tokenizer::create(d);
  if (!t.ok()) return;
  const auto ids = t->encode(in, {.add_special = true, .parse_special = true});
  if (ids.ok()) require(t->decode(*ids).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] & 1)
    fuzz_text(rest);
  else
    fuzz_vocab(data[0], rest);
  return 0;
}
