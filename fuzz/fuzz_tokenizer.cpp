// Layers: tokenizer
// Fuzzes vocabularies and texts. The input's first byte picks what is fuzzed:
//   odd:  the second byte picks one of the named pre-tokenizers; the rest is a text for small fixed vocabularies
//         (byte-level BPE under it, SentencePiece BPE, unigram, characters); whatever comes out of encode() must decode
//         to the text where the vocabulary keeps all of it.
//   even: the rest describes a vocabulary: lines of "type score text", an empty line, merges, an empty line, a text.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pretokenizers.h"
#include "tokenizer/stream_decode.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocabulary.h"

namespace {

using namespace minfer;

void require(bool ok) {
  if (!ok) std::abort();
}

// The pre-tokenizers that cut, one of each kind.
const std::vector<const NamedPretokenizer*>& cutters() {
  static const auto all = [] {
    std::vector<const NamedPretokenizer*> found;
    for (const NamedPretokenizer& p : named_pretokenizers()) {
      const bool known = std::any_of(found.begin(), found.end(), [&](const NamedPretokenizer* f) {
        return f->regexes.data() == p.regexes.data() && f->nfc == p.nfc && f->ignore_merges == p.ignore_merges;
      });
      if (!known && !p.characters) found.push_back(&p);
    }
    return found;
  }();
  return all;
}

Tokenizer byte_level(std::string_view pre) {
  std::vector<std::string_view> tokens;
  for (int b = 0; b < 256; ++b) tokens.push_back(byte_symbol(static_cast<unsigned char>(b)));
  for (const char* t : {"th", "the", "aa", "aaaa",
                        "\xc4\xa0"
                        "a",
                        "<|im_end|>", "<b>", "\n\n"})
    tokens.push_back(t);
  VocabData d;
  d.model = "gpt2";
  d.pre = pre;
  d.types.assign(tokens.size(), 1);
  d.types[261] = 3, d.types[262] = 4, d.types[263] = 4;
  d.tokens = tokens;
  d.merges = {"t h", "th e", "a a", "aa aa", "\xc4\xa0 a"};
  return std::move(Tokenizer::create(d)).value();
}

// "llama", "t5" or "gemma4": U+2581 for spaces, bytes where there is no token.
Tokenizer with_bytes(const char* model) {
  std::vector<std::string> texts = {"<unk>", "<s>", "</s>"};
  VocabData d;
  d.model = model;
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
  if (d.model == "llama") d.types[texts.size() - 3] = 5;  // "ab" is unused
  for (size_t i = 0; i < texts.size(); ++i) d.scores.push_back(-static_cast<float>(i % 7));
  d.tokens.assign(texts.begin(), texts.end());
  d.merges = {"a a", "aa a", "\xe2\x96\x81 a", "a b"};
  return std::move(Tokenizer::create(d)).value();
}

void check(const Tokenizer& t, std::string_view text, bool exact) {
  const auto ids = t.encode(text, {.add_special = false, .parse_special = true});
  require(ids.ok());
  const auto back = t.decode(*ids, {.show_control = true});
  require(back.ok());
  StreamDecoder stream(t, {.show_control = true, .strip_space_prefix = true});
  std::string streamed;
  for (const TokenId id : *ids) streamed += *stream.push(id);
  streamed += stream.finish();
  require(streamed == utf8_replace(*back));
  require(!exact || *back == text);
}

void fuzz_text(uint8_t pick, std::string_view text) {
  static const std::vector<Tokenizer> bytes = [] {
    std::vector<Tokenizer> made;
    for (const NamedPretokenizer* p : cutters()) made.push_back(byte_level(p->name));
    return made;
  }();
  static const Tokenizer llama = with_bytes("llama"), t5 = with_bytes("t5"), characters = with_bytes("gemma4");
  const size_t i = pick % bytes.size();
  check(bytes[i], text, !cutters()[i]->nfc);
  const bool plain = text.find("\xe2\x96\x81") == std::string_view::npos && text.find('<') == std::string_view::npos;
  check(llama, text, plain);
  check(characters, text, plain);
  check(t5, text, false);
}

std::string_view take_line(std::string_view& in) {
  const size_t end = in.find('\n');
  const std::string_view line = in.substr(0, end);
  in.remove_prefix(end == std::string_view::npos ? in.size() : end + 1);
  return line;
}

void fuzz_vocab(uint8_t pick, std::string_view in) {
  VocabData d;
  constexpr const char* kModels[] = {"gpt2", "llama", "t5", "bert", "gemma4"};
  d.model = kModels[(pick >> 1) % std::size(kModels)];
  d.pre = cutters()[(pick >> 2) % cutters().size()]->name;
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
    fuzz_text(size > 1 ? data[1] : 0, rest.empty() ? rest : rest.substr(1));
  else
    fuzz_vocab(data[0], rest);
  return 0;
}
