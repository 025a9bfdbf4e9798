// tokenizer.json files of every supported kind on the fixtures of tools/make_tokenizer_json_fixtures.py; what is
// refused; damaged files.
#include "tokenizer/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tokenizer/rules.h"
#include "tokenizer/testing/cases.h"

namespace minfer {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kFolder = MINFER_SOURCE_DIR "/tests/data/tokenizer/json/";

Json fixture(const std::string& name) {
  std::ifstream in(kFolder + name + ".json");
  return Json::parse(in);
}

std::vector<TokenId> encode(const Tokenizer& t, std::string_view text, EncodeOptions options) {
  auto ids = t.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  return ids.ok() ? std::move(ids).value() : std::vector<TokenId>();
}

class JsonFixture : public ::testing::TestWithParam<const char*> {};

TEST_P(JsonFixture, GivesTheReferencesIds) {
  const Json j = fixture(GetParam());
  const auto t = tokenizer_from_json(j["tokenizer"].dump());
  ASSERT_TRUE(t.ok()) << t.error().message;
  ASSERT_GT(j["cases"].size(), 60u);
  for (const auto& c : j["cases"]) {
    const auto text = c["text"].get<std::string>();
    const auto ids = encode(*t, text, {.add_special = false, .parse_special = true});
    EXPECT_EQ(ids, c["ids"].get<std::vector<TokenId>>()) << c["text"];
    if (!c.contains("decoded")) continue;
    EXPECT_EQ(encode(*t, text, {.add_special = true, .parse_special = true}),
              c["with_special"].get<std::vector<TokenId>>())
        << c["text"];
    const auto want = c["ids"].get<std::vector<TokenId>>();
    // The reference reads an added token's letters as stand-ins of bytes where it decodes bytes.
    if (c["shown"].get<std::string>().find("\xef\xbf\xbd") != std::string::npos) continue;
    EXPECT_EQ(*t->decode(want), c["decoded"].get<std::string>()) << c["text"];
    EXPECT_EQ(*t->decode(want, {.show_control = true}), c["shown"].get<std::string>()) << c["text"];
  }
}

INSTANTIATE_TEST_SUITE_P(Json, JsonFixture,
                         ::testing::Values("bert_uncased", "bert_cased", "gpt2", "roberta", "byte_nfkc", "byte_split",
                                           "llama_legacy", "llama_first", "char_unk", "t5", "xlm", "unigram_bytes",
                                           "steps_lower", "steps_nfkd", "steps_plain"),
                         [](const auto& info) { return std::string(info.param); });

// The GGUF way to a unigram vocabulary, against sentencepiece itself.
TEST(SentencePieceUnigram, GivesTheReferencesIds) {
  for (const char* name : {"sp_unigram", "sp_unigram_bytes"}) {
    const Json j = fixture(name);
    testing::OwnedVocab v;
    v.strings = j["tokens"].get<std::vector<std::string>>();
    v.data.model = "t5";
    v.data.types = j["types"].get<std::vector<int32_t>>();
    v.data.scores = j["scores"].get<std::vector<float>>();
    v.data.add_space_prefix = j["add_space_prefix"].get<bool>();
    v.data.remove_extra_whitespaces = j["remove_extra_whitespaces"].get<bool>();
    v.data.charsmap = testing::base64_bytes(j["charsmap"].get<std::string>());
    v.link(v.strings.size());
    const auto t = Tokenizer::create(v.data);
    ASSERT_TRUE(t.ok()) << t.error().message;
    EXPECT_TRUE(t->add_eos());
    for (const auto& c : j["cases"]) {
      EXPECT_EQ(encode(*t, c["text"].get<std::string>(), {.add_special = false}), c["ids"].get<std::vector<TokenId>>())
          << name << ": " << c["text"];
    }
  }
}

// The GGUF way to WordPiece: words spelled with U+2581, insides bare.
TEST(GgufWordPiece, GivesTheIdsOfTheJson) {
  const Json j = fixture("bert_uncased");
  const auto& vocab = j["tokenizer"]["model"]["vocab"];
  testing::OwnedVocab v;
  v.strings.resize(vocab.size());
  v.data.types.assign(vocab.size(), 1);
  for (const auto& [text, id] : vocab.items()) {
    const bool special = text.front() == '[' && text.size() > 1;
    if (special) v.data.types[id] = text == "[UNK]" ? 2 : 3;
    v.strings[id] = special ? text : text.starts_with("##") ? text.substr(2) : "\xe2\x96\x81" + text;
  }
  v.data.model = "bert";
  v.link(v.strings.size());
  const auto t = Tokenizer::create(v.data);
  ASSERT_TRUE(t.ok()) << t.error().message;
  for (const auto& c : j["cases"]) {
    const auto text = c["text"].get<std::string>();
    const auto ids = c["with_special"].get<std::vector<TokenId>>();
    // Without the added tokens, and words of up to 100 characters.
    if (std::any_of(ids.begin(), ids.end(), [&](TokenId id) { return id >= static_cast<TokenId>(vocab.size()); }))
      continue;
    if (text.find("word") != std::string::npos) continue;  // an added token there
    EXPECT_EQ(encode(*t, text, {.add_special = true, .parse_special = true}), ids) << c["text"];
  }
  EXPECT_EQ(t->text(t->bos()), "[CLS]");
  EXPECT_EQ(t->text(t->sep()), "[SEP]");
}

// A change to a fixture, given as a JSON merge patch, and what the refusal must say.
struct Refusal {
  const char* fixture;
  const char* patch;
  const char* message;
};

TEST(TokenizerJson, WhatCannotBeFollowedIsRefusedByName) {
  const Refusal cases[] = {
      {"gpt2", R"({"normalizer": {"type": "ByteLevel"}})", "normalizer: 'ByteLevel'"},
      {"gpt2", R"({"normalizer": {"type": "Replace", "pattern": {"Regex": "(?<=a)b"}, "content": ""}})", "(?<=a)b"},
      {"gpt2", R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA"}})", "charsmap"},
      {"gpt2", R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "!"}})", "not base64"},
      {"t5", R"({"pre_tokenizer": {"type": "UnicodeScripts"}})", "pre_tokenizer: 'UnicodeScripts'"},
      {"t5", R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "_"}})", "replacement '_'"},
      {"t5", R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a*"}, "behavior": "Isolated"}})",
       "matches where"},
      {"t5", R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Odd"}})", "behavior 'Odd'"},
      {"t5", R"({"decoder": {"type": "CTC"}})", "decoder: 'CTC'"},
      {"gpt2", R"({"decoder": {"type": "Metaspace"}})", "'ByteLevel' without the pre-tokenizer"},
      {"gpt2", R"({"model": {"type": "WordLevel"}})", "'WordLevel'"},
      {"gpt2", R"({"model": {"dropout": 0.1}})", "dropout"},
      {"gpt2", R"({"model": {"end_of_word_suffix": "</w>"}})", "end_of_word_suffix '</w>'"},
      {"gpt2", R"({"model": {"unk_token": "nothing"}})", "'nothing' is not in the vocabulary"},
      {"gpt2", R"({"model": {"vocab": null}})", "no 'vocab'"},
      {"gpt2", R"({"model": {"vocab": {"zz": -1}}})", "expected a token id"},
      {"gpt2", R"({"model": {"vocab": {"zz": 4000000000}}})", "too large"},
      {"gpt2", R"({"model": {"vocab": {"zz": 5}}})", "two tokens have the id 5"},
      {"gpt2", R"({"model": {"merges": [["a", "qq"]]}})", "right part"},
      {"gpt2", R"({"model": {"merges": ["a b c"]}})", "merges[0]"},
      {"gpt2", R"({"model": {"merges": [7]}})", "merges[0]"},
      {"gpt2", R"({"added_tokens": [{"id": 3, "content": "new"}]})", "its id 3 is taken"},
      {"gpt2", R"({"added_tokens": [{"id": 900, "content": "a"}]})", "in the vocabulary"},
      {"gpt2", R"({"added_tokens": [{"content": "new"}]})", "'id' and 'content'"},
      {"gpt2", R"({"added_tokens": 5})", "a list"},
      {"t5", R"({"model": {"unk_id": 100000}})", "unk_id"},
      {"t5", R"({"model": {"vocab": [["a"]]}})", "vocab[0]"},
      {"t5", R"({"post_processor": {"type": "TemplateProcessing", "single": []}})", "without the text"},
      {"t5", R"({"post_processor": {"type": "BertProcessing", "cls": ["x", 99999], "sep": ["y", 1]}})",
       "not in the vocabulary"},
      {"bert_cased", R"({"model": {"max_input_chars_per_word": 100000000}})", "at most 1000"},
      {"bert_cased", R"({"model": {"unk_token": null}})", "unknown token"},
      {"llama_legacy", R"({"decoder": {"type": "Fuse", "decoders": null}})", "ByteFallback"},
  };
  for (const Refusal& c : cases) {
    Json j = fixture(c.fixture)["tokenizer"];
    const Json patch = Json::parse(c.patch);
    for (const auto& [key, value] : patch.items()) {
      if (key == "model")
        j[key].merge_patch(value);
      else
        j[key] = value;
    }
    const auto t = tokenizer_from_json(j.dump());
    ASSERT_FALSE(t.ok()) << c.patch;
    EXPECT_THAT(t.error().message, HasSubstr(c.message)) << c.patch;
  }
  for (const char* text : {"", "[", "[]", "{}", "5", "{\"model\": []}", "{\"model\": {\"type\": \"BPE\"}}", "\xff"}) {
    EXPECT_FALSE(tokenizer_from_json(text).ok()) << text;
  }
  const std::string nested(200000, '[');
  EXPECT_FALSE(tokenizer_from_json(nested).ok());
}

TEST(TokenizerJson, ConfigNamesTheSpecialTokens) {
  const std::string json = fixture("llama_legacy")["tokenizer"].dump();
  const auto t =
      tokenizer_from_json(json, R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": null})");
  ASSERT_TRUE(t.ok()) << t.error().message;
  EXPECT_EQ(t->bos(), 1);
  EXPECT_EQ(t->eos(), 2);
  EXPECT_TRUE(t->is_eog(2));
  EXPECT_TRUE(t->add_bos());
  EXPECT_EQ(t->pad(), kNoToken);
  EXPECT_FALSE(tokenizer_from_json(json, R"({"bos_token": 5})").ok());
}

TEST(TokenizerJson, UnparsedControlTextStaysText) {
  for (const char* name : {"gpt2", "llama_legacy", "t5", "bert_uncased"}) {
    const auto t = tokenizer_from_json(fixture(name)["tokenizer"].dump());
    ASSERT_TRUE(t.ok()) << t.error().message;
    for (const char* text : {"a<mask>b", "<s>hi</s>", "[CLS] x [SEP]"}) {
      for (const TokenId id : encode(*t, text, {.add_special = false, .parse_special = false})) {
        EXPECT_NE(t->type(id), TokenType::kControl) << name << " " << text;
      }
    }
  }
}

// Damaged files are refused or give a tokenizer that works; they never crash.
TEST(TokenizerJson, RandomDamage) {
  std::mt19937 rng(9);
  for (const char* name : {"bert_uncased", "byte_split", "llama_first", "xlm"}) {
    const std::string whole = fixture(name)["tokenizer"].dump();
    for (int i = 0; i < 60; ++i) {
      std::string text = whole;
      for (int k = 0; k < 3; ++k) {
        const size_t at = rng() % std::min<size_t>(text.size(), i % 2 ? 3000 : text.size());
        if (rng() % 2)
          text[at] = static_cast<char>("{}[],:\"0n-1e"[rng() % 12]);
        else
          text.erase(at, rng() % 9);
      }
      const auto t = tokenizer_from_json(text);
      if (!t.ok()) continue;
      const auto ids = t->encode("the cat <mask> \xff word", {.parse_special = true});
      if (ids.ok()) {
        EXPECT_TRUE(t->decode(*ids).ok());
      }
    }
  }
}

}  // namespace
}  // namespace minfer
