// The named pre-tokenizers on the fixtures of tools/make_pretokenizer_fixtures.py, and properties of any cut.
#include "tokenizer/pretokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "tokenizer/pretokenizers.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocabulary.h"

namespace minfer {
namespace {

nlohmann::json fixture() {
  std::ifstream in(MINFER_SOURCE_DIR "/tests/data/tokenizer/splits.json");
  return nlohmann::json::parse(in);
}

std::vector<Piece> cut(const std::vector<SplitStep>& steps, std::string_view text) {
  std::vector<Piece> pieces = {{0, static_cast<uint32_t>(text.size())}}, scratch;
  for (const SplitStep& step : steps) {
    const Status done = pretokenize(step, text, pieces, scratch);
    EXPECT_TRUE(done.ok()) << done.error().message;
  }
  return pieces;
}

std::vector<std::string> texts_of(const std::vector<Piece>& pieces, std::string_view text) {
  std::vector<std::string> out;
  for (const Piece p : pieces) out.emplace_back(text.substr(p.begin, p.end - p.begin));
  return out;
}

// The fixture writes pieces as byte-level BPE does.
std::string mapped(std::string_view text) {
  std::string out;
  for (const char c : text) out += byte_symbol(static_cast<unsigned char>(c));
  return out;
}

TEST(Pretokenize, CutsAsTheReference) {
  const auto j = fixture();
  size_t n = 0;
  for (const NamedPretokenizer& named : named_pretokenizers()) {
    if (named.characters) continue;  // they do not cut
    ASSERT_TRUE(j["same_as"].contains(named.name)) << named.name;
    const auto& rows = j["pieces"][j["same_as"][std::string(named.name)].get<std::string>()];
    const auto steps = named.steps();
    ASSERT_TRUE(steps.ok()) << steps.error().message;
    for (size_t i = 0; i < rows.size(); ++i, ++n) {
      std::string text = j["texts"][i];
      if (named.nfc) text = to_nfc(text);
      std::vector<std::string> pieces;
      for (const std::string& p : texts_of(cut(*steps, text), text)) pieces.push_back(mapped(p));
      std::vector<std::string> want;
      for (const auto& p : rows[i]) want.push_back(p.get<std::string>());
      EXPECT_EQ(pieces, want) << named.name << ": " << j["texts"][i];
    }
  }
  EXPECT_GT(n, 4000u);
}

std::string random_text(std::mt19937& rng, bool valid) {
  static constexpr std::string_view kParts[] = {
      " ",  "  ",  "\n", "\r\n",      "\t",       "'s",           "'LL", "12",  "1234", "ab",
      "Ab", "CD",  "é",  "e\xcc\x81", "字",       "한",           "ǅ",   "ʰ",   "²",    "٣",
      "!",  "...", "/",  "<|",        "\xc2\xa0", "\xe2\x80\xa8", "😀",   "a b", "'ſ",   "$"};
  std::string text;
  for (size_t n = rng() % 30; n > 0; --n) {
    const uint32_t pick = rng() % 40;
    if (pick < std::size(kParts)) {
      text += kParts[pick];
    } else if (!valid && pick % 2) {
      text += static_cast<char>(rng());
    } else {
      uint32_t cp = rng() % 0x3000;
      if (pick == 38) cp = rng() % 0x110000;
      if (cp < 0xd800 || cp > 0xdfff) append_utf8(text, cp);
    }
  }
  return text;
}

TEST(Pretokenize, EveryCutOfAnyBytesCoversTheText) {
  std::mt19937 rng(3);
  for (const NamedPretokenizer& named : named_pretokenizers()) {
    const auto steps = named.steps();
    ASSERT_TRUE(steps.ok()) << steps.error().message;
    for (int i = 0; i < 200; ++i) {
      const std::string text = random_text(rng, i % 2 == 0);
      uint32_t last = 0;
      for (const Piece p : cut(*steps, text)) {
        ASSERT_EQ(p.begin, last) << named.name;
        if (!text.empty()) {
          ASSERT_GT(p.end, p.begin);
        }
        last = p.end;
      }
      EXPECT_EQ(last, text.size());
    }
  }
}

// The scanners cut as the expressions that they stand for.
TEST(Pretokenize, ScannersAgreeWithTheirExpressions) {
  std::mt19937 rng(5);
  size_t compared = 0;
  for (const NamedPretokenizer& named : named_pretokenizers()) {
    for (const std::string_view regex : named.regexes) {
      const auto fast = SplitStep::make(regex);
      const auto slow = SplitStep::from_pattern(regex, SplitHow::kIsolated, false);
      if (!fast.ok() || !fast->scan || !slow.ok()) continue;
      for (int i = 0; i < 300; ++i, ++compared) {
        const std::string text = random_text(rng, i % 2 == 0);
        ASSERT_EQ(texts_of(cut({*fast}, text), text), texts_of(cut({*slow}, text), text)) << regex;
      }
    }
  }
  EXPECT_GT(compared, 5000u);
}

TEST(Pretokenize, LongRunsTakeLinearWork) {
  std::set<const void*> seen;
  for (const NamedPretokenizer& named : named_pretokenizers()) {
    if (!seen.insert(named.regexes.data()).second) continue;  // the same as another name
    const auto steps = named.steps();
    ASSERT_TRUE(steps.ok());
    for (const char* unit : {"A", " ", "a ", "\n", " \n", "字", "😀", "\xcc\x81", "1", "'", "!", "\xff", "aB", "Aa1"}) {
      std::string text;
      while (text.size() < 200000) text += unit;
      EXPECT_EQ(cut(*steps, text).back().end, text.size()) << named.name << " " << unit;  // more work is an error
      text += 'x';
      EXPECT_EQ(cut(*steps, text).back().end, text.size()) << named.name << " " << unit;
    }
  }
}

TEST(Pretokenize, QuadraticSearchesAreRefused) {
  const auto step = SplitStep::make(R"(\s+\.)");
  ASSERT_TRUE(step.ok());
  const std::string text(100000, ' ');
  std::vector<Piece> pieces = {{0, static_cast<uint32_t>(text.size())}}, scratch;
  const Status done = pretokenize(*step, text, pieces, scratch);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().message, ::testing::HasSubstr("more than 64 times"));
}

TEST(Pretokenize, Behaviors) {
  const auto pieces = [](SplitHow how, bool invert, std::string_view text) {
    const auto step = SplitStep::make("-", how, invert);
    EXPECT_TRUE(step.ok());
    std::string joined;
    for (const std::string& p : texts_of(cut({*step}, text), text)) joined += p + "|";
    return joined;
  };
  constexpr std::string_view kText = "the-final--countdown-";  // the example of Hugging Face's documentation
  EXPECT_EQ(pieces(SplitHow::kRemoved, false, kText), "the|final|countdown|");
  EXPECT_EQ(pieces(SplitHow::kIsolated, false, kText), "the|-|final|-|-|countdown|-|");
  EXPECT_EQ(pieces(SplitHow::kMergedWithPrevious, false, kText), "the-|final-|-|countdown-|");
  EXPECT_EQ(pieces(SplitHow::kMergedWithNext, false, kText), "the|-final|-|-countdown|-|");
  EXPECT_EQ(pieces(SplitHow::kContiguous, false, kText), "the|-|final|--|countdown|-|");
  EXPECT_EQ(pieces(SplitHow::kRemoved, true, kText), "-|-|-|-|");
}

TEST(Pretokenize, NamesAreSortedAndUnique) {
  const auto all = named_pretokenizers();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].name, all[i].name);
  EXPECT_EQ(find_pretokenizer("nonsense"), nullptr);
}

}  // namespace
}  // namespace minfer
