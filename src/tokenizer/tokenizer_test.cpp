// Tokenizers on the fixtures of tools/make_tokenizer_fixtures.py: ids, special tokens, round trips, faulty
// vocabularies.
#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tokenizer/pretokenizers.h"
#include "tokenizer/stream_decode.h"
#include "tokenizer/testing/cases.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocab_from_gguf.h"
#include "tokenizer/vocabulary.h"

namespace minfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

nlohmann::json fixture(const std::string& name) {
  std::ifstream in(std::string(MINFER_SOURCE_DIR "/tests/data/tokenizer/") + name);
  return nlohmann::json::parse(in);
}

testing::OwnedVocab fixture_vocab(const nlohmann::json& j) {
  testing::OwnedVocab v;
  v.data.model = j["model"];
  v.data.pre = j.value("pre", "");
  v.strings = j["tokens"].get<std::vector<std::string>>();
  const size_t n = v.strings.size();
  v.data.types = j["types"].get<std::vector<int32_t>>();
  if (j.contains("scores")) v.data.scores = j["scores"].get<std::vector<float>>();
  if (j.contains("merges")) {
    for (const auto& m : j["merges"]) v.strings.push_back(m);
  }
  v.data.bos = j["bos"];
  v.data.eos = j["eos"];
  v.data.unk = j.value("unk", kNoToken);
  v.link(n);
  return v;
}

// "byte_bpe.json" or "spm_bpe.json".
Tokenizer make(const std::string& name, const std::function<void(VocabData&)>& change = {}) {
  auto v = fixture_vocab(fixture(name));
  if (change) change(v.data);
  auto t = Tokenizer::create(v.data);
  EXPECT_TRUE(t.ok()) << t.error().message;
  return std::move(t).value();
}

std::vector<TokenId> encode(const Tokenizer& t, std::string_view text, EncodeOptions options = {.add_special = false}) {
  auto ids = t.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  return std::move(ids).value();
}

class Fixture : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Both, Fixture, ::testing::Values("byte_bpe.json", "spm_bpe.json"),
                         [](const auto& info) { return std::string(info.param, 3); });

TEST_P(Fixture, GivesTheReferencesIds) {
  const Tokenizer t = make(GetParam());
  const auto j = fixture(GetParam());
  for (const auto& c : j["cases"]) {
    const auto text = c["text"].get<std::string>();
    const auto ids = encode(t, text, {.add_special = false, .parse_special = true});
    EXPECT_EQ(ids, c["ids"].get<std::vector<TokenId>>()) << c["text"];
    if (text.find("\xe2\x96\x81") == std::string::npos) {
      EXPECT_EQ(*t.decode(ids, {.show_control = true}), text);
    }
  }
}

std::string random_text(std::mt19937& rng, bool valid) {
  std::string text;
  const size_t n = rng() % 60;
  while (text.size() < n) {
    if (!valid && rng() % 2) {
      text += static_cast<char>(rng());
      continue;
    }
    static constexpr uint32_t kTops[] = {0x80, 0x80, 0x80, 0x250, 0x800, 0x10000, 0x110000};
    const uint32_t cp = rng() % kTops[rng() % 7];
    if ((cp >= 0xd800 && cp < 0xe000) || cp == 0x2581) continue;
    for (size_t repeat = rng() % 8 == 0 ? 1 + rng() % 9 : 1; repeat > 0; --repeat) append_utf8(text, cp);
  }
  return text;
}

TEST_P(Fixture, RoundTripsAnyBytes) {
  const Tokenizer t = make(GetParam());
  std::mt19937 rng(7);
  for (int i = 0; i < 4000; ++i) {
    std::string text = random_text(rng, i % 2 == 0);
    if (text.find("\xe2\x96\x81") != std::string::npos) continue;  // SentencePiece reads U+2581 as a space
    const auto ids = encode(t, text);
    EXPECT_EQ(*t.decode(ids, {.show_control = true}), text) << ::testing::PrintToString(text);
    StreamDecoder stream(t, {.show_control = true, .strip_space_prefix = true});
    std::string streamed;
    for (const TokenId id : ids) {
      const std::string part = *stream.push(id);
      EXPECT_EQ(utf8_replace(part), part);  // never part of a character
      streamed += part;
    }
    streamed += stream.finish();
    EXPECT_EQ(streamed, utf8_replace(text));
  }
}

TEST_P(Fixture, LongRunsEnd) {
  const Tokenizer t = make(GetParam());
  std::string cjk, mixed, marks;
  for (int i = 0; i < 300000; ++i) cjk += "天";
  for (int i = 0; i < 200000; ++i) mixed += i % 2 ? "\n" : " ";
  for (int i = 0; i < 200000; ++i) marks += i % 2 ? "\xcc\x81" : "\xcc\xa3";
  for (const std::string& text : {std::string(1000000, 'A'), std::string(1000000, ' '), std::string(1000000, '.'),
                                  std::string(1000000, '\xff'), std::string(1000000, '<'), cjk, mixed, marks}) {
    EXPECT_EQ(*t.decode(encode(t, text, {.add_special = false, .parse_special = true})), text);
  }
}

TEST_P(Fixture, ManyThreadsShareATokenizer) {
  const Tokenizer t = make(GetParam());
  const std::string text = "the cat sat on the mat, 2024 times. 今天天气很好";
  const auto want = encode(t, text);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) wrong += *t.encode(text, {.add_special = false}) != want;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(Fixture, BosAndEos) {
  const Tokenizer t = make(GetParam(), [](VocabData& d) { d.add_bos = true, d.add_eos = true; });
  EXPECT_THAT(encode(t, "", {.add_special = true}), ElementsAre(1, 2));
  const auto ids = encode(t, "the", {.add_special = true});
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(ids.back(), 2);
  EXPECT_EQ(*t.decode(ids), "the");
  EXPECT_TRUE(t.is_eog(2));
  EXPECT_FALSE(t.is_eog(1));
}

TEST(Tokenizer, DefaultsOfAddBos) {
  EXPECT_FALSE(make("byte_bpe.json").add_bos());
  EXPECT_TRUE(make("byte_bpe.json", [](VocabData& d) { d.pre = "llama-bpe"; }).add_bos());
  EXPECT_TRUE(make("spm_bpe.json").add_bos());
  EXPECT_FALSE(make("spm_bpe.json", [](VocabData& d) { d.add_bos = false; }).add_bos());
}

TEST(Tokenizer, SpecialTextIsOrdinaryUnlessParsed) {
  const Tokenizer t = make("byte_bpe.json");
  const std::string text = "a<|im_end|>b<think>";
  const TokenId end = *t.find("<|im_end|>"), think = *t.find("<think>");
  const auto plain = encode(t, text);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), end), 0);
  EXPECT_EQ(plain.back(), think);  // user-defined tokens match everywhere
  EXPECT_EQ(*t.decode(plain), text);
  const auto parsed = encode(t, text, {.add_special = false, .parse_special = true});
  EXPECT_EQ(std::count(parsed.begin(), parsed.end(), end), 1);
  EXPECT_EQ(*t.decode(parsed), "ab<think>");
  EXPECT_EQ(*t.decode(parsed, {.show_control = true}), text);
}

TEST(Tokenizer, SegmentsAreOneTextWithControlTokensInMarkupOnly) {
  const Tokenizer t = make("byte_bpe.json");
  const auto segments = [&](std::vector<TextSegment> s) { return *t.encode_segments(s); };
  const TokenId end = *t.find("<|im_end|>");
  EXPECT_EQ(segments({{"the c", true}, {"at sat", false}, {" on", true}}), encode(t, "the cat sat on"));
  // A marker in two pieces of markup is one; one that content completes is none.
  EXPECT_THAT(segments({{"<|im_", true}, {"", false}, {"end|>", true}}), ElementsAre(end));
  const auto split = segments({{"<|im_", true}, {"end|>", false}});
  EXPECT_EQ(std::count(split.begin(), split.end(), end), 0);
  const auto inside = segments({{"<|im_end|>", false}});
  EXPECT_EQ(std::count(inside.begin(), inside.end(), end), 0);
  EXPECT_THAT(segments({{"<|im_end|>", true}}), ElementsAre(end));
  EXPECT_THAT(segments({}), ElementsAre());
  EXPECT_THAT(*t.encode_segments({}, true), ElementsAre());
}

TEST(Tokenizer, EndTokensMarkedOrdinaryAreStillControl) {
  auto v = fixture_vocab(fixture("byte_bpe.json"));
  for (auto& type : v.data.types) type = 1;
  const auto t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok());
  const TokenId end = *t->find("<|im_end|>");
  EXPECT_TRUE(t->is_control(end));
  EXPECT_TRUE(t->is_eog(end));
  const auto ids = encode(*t, "<|im_end|>");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 0);
}

TEST(Tokenizer, RstripTakesTheSpaceAfterAControlToken) {
  const Tokenizer t = make("spm_bpe.json", [](VocabData& d) { d.added = {{.id = 2, .rstrip = true}}; });
  const EncodeOptions parse = {.add_special = false, .parse_special = true};
  EXPECT_EQ(encode(t, "</s> \n\tthe", parse), encode(t, "</s>the", parse));
  EXPECT_NE(encode(t, "<s> the", parse), encode(t, "<s>the", parse));
}

TEST(Tokenizer, SpacePrefix) {
  const Tokenizer with = make("spm_bpe.json");
  const Tokenizer without = make("spm_bpe.json", [](VocabData& d) { d.add_space_prefix = false; });
  EXPECT_EQ(encode(with, "the"), encode(without, " the"));
  EXPECT_EQ(*without.decode(encode(without, " the")), " the");
  EXPECT_EQ(*with.decode(encode(with, "the"), {.strip_space_prefix = false}), " the");
  EXPECT_THAT(encode(with, ""), ElementsAre());
  // After a control token it comes again; before one alone it does not.
  const EncodeOptions parse = {.add_special = false, .parse_special = true};
  std::vector<TokenId> want = {1};
  for (const TokenId id : encode(with, "the")) want.push_back(id);
  EXPECT_EQ(encode(with, "<s>the", parse), want);
  EXPECT_THAT(encode(with, "<s></s>", parse), ElementsAre(1, 2));
}

TEST(Tokenizer, TextOfByteTokensIsOrdinary) {
  const Tokenizer t = make("spm_bpe.json");
  const auto ids = encode(t, "<0x0A>");
  EXPECT_GT(ids.size(), 1u);
  EXPECT_EQ(*t.decode(ids), "<0x0A>");
  EXPECT_EQ(t.piece(*t.find("<0x0A>")), "\n");
}

TEST(Tokenizer, WithoutScoresTheLeftmostPairMergesFirst) {
  testing::OwnedVocab v;
  v.strings = {"<unk>", "a", "b", "c", "ab", "bc"};
  v.data.model = "llama";
  v.data.types = {2, 1, 1, 1, 1, 1};
  v.data.add_bos = false;
  v.data.add_space_prefix = false;
  v.link(6);
  const auto t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok()) << t.error().message;
  EXPECT_THAT(encode(*t, "abc"), ElementsAre(4, 3));
  EXPECT_THAT(encode(*t, "bcc"), ElementsAre(5, 3));
}

TEST(Tokenizer, WithoutByteTokensTheUnknownTokenServesOnce) {
  testing::OwnedVocab v;
  v.strings = {"<unk>", "<s>", "</s>", "\xe2\x96\x81", "a"};
  v.data.model = "llama";
  v.data.scores = {0, 0, 0, -1, -2};
  v.data.types = {2, 3, 3, 1, 1};
  v.data.add_bos = false;
  v.link(5);
  auto t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(encode(*t, "axyza"), ElementsAre(3, 4, 0, 4));
  v.strings[0] = "b";
  v.data.types[0] = 1;
  v.link(5);
  t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok());
  const auto failed = t->encode("x");
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("0x78"));
}

// What Hugging Face's BPE gives for these without an unk_token: bytes without a token are as if they were not there.
TEST(Tokenizer, BytesWithoutATokenAreLeftOut) {
  testing::OwnedVocab v;
  v.data.model = "gpt2";
  v.data.pre = "gpt-2";
  v.data.types = {3, 1, 1, 1, 1, 1, 1, 3};  // "!" is a control token
  v.strings = {"<|end|>", "a", "c", "x", "y", "ac", "xy", "!", "a c", "x y"};
  v.data.eos = 0;
  for (const TokenId unknown : {TokenId{0}, kNoToken, TokenId{1}}) {  // a control token, none, an ordinary one
    v.data.unk = unknown;
    v.link(8);
    const auto t = Tokenizer::create(v.data);
    ASSERT_TRUE(t.ok()) << t.error().message;
    using Ids = std::vector<TokenId>;
    EXPECT_EQ(encode(*t, "abc"), Ids{5});
    EXPECT_EQ(encode(*t, "bbb"), Ids{});
    EXPECT_EQ(encode(*t, "abbc xby"), (Ids{5, 6}));
    EXPECT_EQ(encode(*t, "a c"), (Ids{1, 2}));
    EXPECT_EQ(encode(*t, std::string_view("\0a", 2)), Ids{1});
    EXPECT_EQ(encode(*t, "!!\xff a!"), Ids{1});
    EXPECT_EQ(encode(*t, "a" + std::string(1000, 'b') + "c"), Ids{5});  // the path of long pieces
    Ids many;
    for (int i = 0; i < 100; ++i) many.push_back(5);
    std::string text;
    for (int i = 0; i < 100; ++i) text += "abc";
    EXPECT_EQ(encode(*t, text), many);
  }
  v.data.types[0] = 2;  // unknown: it is for them, and stands between their neighbours
  v.data.unk = 0;
  v.data.eos = kNoToken;
  v.link(8);
  const auto t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok()) << t.error().message;
  EXPECT_EQ(encode(*t, "abc"), (std::vector<TokenId>{1, 0, 2}));
}

TEST(Tokenizer, NoMergeSpellsAControlToken) {
  testing::OwnedVocab v;
  v.data.model = "gpt2";
  v.data.pre = "gpt-2";
  v.strings = {"a", "b", "ab", "c", "abc", "a b", "ab c"};
  v.data.types = {1, 1, 3, 1, 1};  // "ab" is a control token
  v.link(5);
  const auto t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok()) << t.error().message;
  EXPECT_EQ(encode(*t, "abc"), (std::vector<TokenId>{0, 1, 3}));
}

TEST(Tokenizer, TokensMayReachOverASpace) {
  testing::OwnedVocab v;
  v.strings = {"<unk>", ">", "<", "\xe2\x96\x81", "\xe2\x96\x81<", ">\xe2\x96\x81<", "a"};
  v.data.model = "llama";
  v.data.scores = {0, -9, -9, -9, -2, -1, -9};
  v.data.types = {2, 1, 1, 1, 1, 1, 1};
  v.data.add_space_prefix = false;
  v.link(7);
  const auto t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(encode(*t, "> <a <>  <"), ElementsAre(5, 6, 4, 1, 3, 4));
}

TEST(Tokenizer, UnusedTokensAreUndone) {
  testing::OwnedVocab v;
  v.strings = {"<unk>", "a", "b", "c", "ab", "abc"};
  v.data.model = "llama";
  v.data.scores = {0, -9, -9, -9, -1, -2};
  v.data.types = {2, 1, 1, 1, 1, 5};
  v.data.add_space_prefix = false;
  v.link(6);
  auto t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(encode(*t, "abc"), ElementsAre(4, 3));
  v.data.types[4] = 5;
  t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(encode(*t, "abcab"), ElementsAre(1, 2, 3, 1, 2));
}

TEST(Tokenizer, DecodeRefusesForeignIds) {
  const Tokenizer t = make("byte_bpe.json");
  for (const TokenId id : {-1, static_cast<TokenId>(t.n_vocab()), INT32_MAX, INT32_MIN}) {
    const auto r = t.decode({{id}});
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, ErrorCode::kOutOfRange);
    EXPECT_THAT(r.error().message, HasSubstr(std::to_string(id)));
    EXPECT_FALSE(t.valid(id));
  }
}

struct Fault {
  const char* file;
  const char* message;
  std::function<void(testing::OwnedVocab&)> make;
};

TEST(Tokenizer, FaultyVocabulariesAreRefused) {
  const std::string two_kib(2048, 'x');
  const Fault faults[] = {
      {"byte_bpe.json", "known: bert, gemma4, gpt2, llama, t5", [](auto& v) { v.data.model = "rwkv"; }},
      {"byte_bpe.json", "known: a.x-4.0, bailingmoe", [](auto& v) { v.data.pre = "nonsense"; }},
      {"byte_bpe.json", "tokens: found 0", [](auto& v) { v.data.tokens.clear(); }},
      {"byte_bpe.json", "merges: found none", [](auto& v) { v.data.merges.clear(); }},
      {"byte_bpe.json", "merges[3]: found 5 bytes without two parts", [](auto& v) { v.data.merges[3] = "nopar"; }},
      {"byte_bpe.json", "merges[0]: found 0 bytes", [](auto& v) { v.data.merges[0] = ""; }},
      {"byte_bpe.json", "merges[0]: found 2 bytes", [](auto& v) { v.data.merges[0] = "a "; }},
      {"byte_bpe.json", "merges[1]: its right part", [](auto& v) { v.data.merges[1] = "a zzzz"; }},
      {"byte_bpe.json", "merges[1]: its left part", [](auto& v) { v.data.merges[1] = "zzzz a"; }},
      {"byte_bpe.json", "merges[1]: its result", [](auto& v) { v.data.merges[1] = "Q Q"; }},
      {"byte_bpe.json", "merges[2]: the same pair as merges[0]", [](auto& v) { v.data.merges[2] = v.data.merges[0]; }},
      {"byte_bpe.json", "token_type: found 1 entries", [](auto& v) { v.data.types.resize(1); }},
      {"byte_bpe.json", "token_type[5]: found 7", [](auto& v) { v.data.types[5] = 7; }},
      {"byte_bpe.json", "bos_token_id: found 100000", [](auto& v) { v.data.bos = 100000; }},
      {"byte_bpe.json", "eos_token_id: found -2", [](auto& v) { v.data.eos = -2; }},
      {"byte_bpe.json", "scores: found 2 entries",
       [](auto& v) {
         v.data.scores = {1, 2};
       }},
      {"byte_bpe.json", "special token of 2048 bytes", [&](auto& v) { v.data.tokens[0] = two_kib; }},
      {"spm_bpe.json", "scores: found 2 entries", [](auto& v) { v.data.scores.resize(2); }},
      {"spm_bpe.json", "scores[4]: found NaN", [](auto& v) { v.data.scores[4] = NAN; }},
      {"spm_bpe.json", "not of the form <0x0A>", [](auto& v) { v.data.tokens[10] = "<0x-1>"; }},
  };
  for (const Fault& fault : faults) {
    auto v = fixture_vocab(fixture(fault.file));
    fault.make(v);
    const auto t = Tokenizer::create(v.data);
    ASSERT_FALSE(t.ok()) << fault.message;
    EXPECT_THAT(t.error().message, HasSubstr(fault.message));
  }
}

TEST(Tokenizer, EmptyAndRepeatedAndBrokenTextsAreAccepted) {
  auto v = fixture_vocab(fixture("byte_bpe.json"));
  v.strings.insert(v.strings.begin() + static_cast<ptrdiff_t>(v.data.tokens.size()),
                   {"", "", "a", "\xff\xfe", "<|im_end|>"});
  const size_t n = v.data.tokens.size() + 5;
  v.data.types.insert(v.data.types.end(), {1, 3, 1, 1, 3});
  v.link(n);
  const auto t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok()) << t.error().message;
  const Tokenizer plain = make("byte_bpe.json");
  EXPECT_EQ(encode(*t, "a cat\xff\xfe"), encode(plain, "a cat\xff\xfe"));
  EXPECT_EQ(t->piece(static_cast<TokenId>(n - 5)), "");
  EXPECT_EQ(t->piece(static_cast<TokenId>(n - 2)), "\xff\xfe");
  EXPECT_EQ(*t->find("<|im_end|>"), *plain.find("<|im_end|>"));
  EXPECT_FALSE(t->find("").has_value());
}

// The files with one spoiled field: those about the vocabulary.
TEST(Tokenizer, MalformedFiles) {
  const std::string dir = testing::cases_dir() + "/gguf-malformed/";
  if (!testing::file_exists(dir + "manifest.json")) GTEST_SKIP() << dir << " is absent";
  const std::map<std::string, const char*> wanted = {
      {"_valid_base", ""},
      {"tokens_missing", "tokenizer.ggml.tokens"},
      {"tokens_scalar", "tokenizer.ggml.tokens"},
      {"scores_u8", "tokenizer.ggml.scores"},
      {"scores_short", "scores: found 2 entries, expected 11"},
      {"token_type_u8", ""},
      {"bos_oob", "bos_token_id: found 11, expected 0 to 10"},
      {"byte_token_neg", "not of the form <0x0A>"},
      {"token_empty", ""},
      {"token_bad_utf8", ""},
      {"merge_no_space", "merges[0]: found 2 bytes without two parts"},
  };
  for (const auto& [id, message] : wanted) {
    const auto t = testing::load_gguf_tokenizer(dir + id + ".gguf");
    EXPECT_EQ(t.ok(), *message == 0) << id << ": " << (t.ok() ? "" : t.error().message);
    if (!t.ok()) {
      EXPECT_THAT(t.error().message, HasSubstr(message)) << id;
      continue;
    }
    const auto ids = t->encode("hello w\xff");
    if (ids.ok()) {
      EXPECT_TRUE(t->decode(*ids).ok());
    }
  }
}

TEST(Unicode, Nfc) {
  EXPECT_EQ(to_nfc("cafe\xcc\x81"), "caf\xc3\xa9");
  EXPECT_EQ(to_nfc("\xe2\x84\xab"), "\xc3\x85");                              // ANGSTROM SIGN
  EXPECT_EQ(to_nfc("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8"), "\xea\xb0\x81");  // Hangul jamo
  EXPECT_EQ(to_nfc("a\xcc\x81\xcc\xa3"), "\xe1\xba\xa1\xcc\x81");             // marks are put in order
  EXPECT_EQ(to_nfc("\xff"
                   "e\xcc\x81\xcc"),
            "\xff\xc3\xa9\xcc");  // broken bytes stay
  EXPECT_EQ(to_nfc(std::string("\0e\xcc\x81", 4)), std::string("\0\xc3\xa9", 3));
}

}  // namespace
}  // namespace minfer
