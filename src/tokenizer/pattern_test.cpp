// Regular expressions: what they match, what is refused. (That they cut as Hugging Face's does: pretokenize_test.cpp.)
#include "tokenizer/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tokenizer/char_set.h"

namespace minfer {
namespace {

size_t match(std::string_view regex, std::string_view text, size_t pos = 0) {
  const auto p = Pattern::compile(regex);
  EXPECT_TRUE(p.ok()) << p.error().message;
  uint64_t work = 0;
  return p.ok() ? p->match(text, pos, work) : Pattern::kNoMatch;
}
constexpr size_t kNo = Pattern::kNoMatch;

TEST(Pattern, TheFirstAlternativeWinsNotTheLongest) {
  EXPECT_EQ(match("a|ab", "ab"), 1u);
  EXPECT_EQ(match("ab|a", "ab"), 2u);
  EXPECT_EQ(match("(a|ab)c|a", "abc"), 3u);
  EXPECT_EQ(match("a*?b|a", "aab"), 3u);
  EXPECT_EQ(match("a+?", "aaa"), 1u);
  EXPECT_EQ(match("a{2,3}", "aaaa"), 3u);
  EXPECT_EQ(match("a{2}", "a"), kNo);
  EXPECT_EQ(match("a{0,2}?b", "aab"), 3u);
  EXPECT_EQ(match("(ab|a)*b", "aabab"), 5u);
  EXPECT_EQ(match("(a*)*", "aaa"), 3u);
  EXPECT_EQ(match("x*", "aaa"), 0u);
}

TEST(Pattern, LooksAtOneCharacterAhead) {
  EXPECT_EQ(match(R"(\s+(?!\S)|\s+)", "   x"), 2u);
  EXPECT_EQ(match(R"(\s+(?!\S)|\s+)", "   "), 3u);
  EXPECT_EQ(match(R"(\s+(?!\S)|\s+)", " x"), 1u);
  EXPECT_EQ(match(R"(a(?=b))", "ab"), 1u);
  EXPECT_EQ(match(R"(a(?=b))", "a"), kNo);
  EXPECT_EQ(match(R"(a(?=b|$))", "a"), 1u);
  EXPECT_EQ(match(R"(a$)", "a\nb"), 1u);
  EXPECT_EQ(match(R"(a$)", "ab"), kNo);
}

TEST(Pattern, Classes) {
  EXPECT_EQ(match(R"([^\r\n\p{L}]+)", "1 -a"), 3u);
  EXPECT_EQ(match(R"([\p{L}&&[^\p{Han}]]+)", "aé字"), 3u);
  EXPECT_EQ(match(R"([a-c\-x]+)", "ab-xd"), 4u);
  EXPECT_EQ(match(R"([+-]+)", "+-+"), 3u);
  EXPECT_EQ(match(R"(\p{^L}\P{L}\p{Lu})", "12A"), 3u);
  EXPECT_EQ(match(R"(\u00e9\x{1F600}\x41)", "é😀A"), 7u);
  EXPECT_EQ(match(R"((?i:'s)x)", "'Sx"), 3u);
  EXPECT_EQ(match(R"((?i:'s)x)", "'ſx"), 4u);
  EXPECT_EQ(match(R"((?i:'s)x)", "'SX"), kNo);
  EXPECT_EQ(match(R"((?i:é))", "É"), 2u);
  EXPECT_EQ(match(R"(\d+)", "1٣²"), 3u);
  EXPECT_EQ(match(R"(\w+)", "a_1é-"), 5u);
  EXPECT_EQ(match(R"([^\s]+)", "a\xff\xfe b"), 3u);  // broken bytes are in no class but those of everything else
  EXPECT_EQ(match(R"(\p{L}+)", "\xff"), kNo);
  EXPECT_EQ(match(R"(\s+)", "\xe1\xa0\x8e"), kNo);  // U+180E is no white space
}

TEST(Pattern, PossessiveWhereItIsGreedy) {
  EXPECT_EQ(match(R"([^\r\n\p{L}\p{N}]?+\p{L}+| ?[^\s\p{L}\p{N}]++[\r\n]*)", " ab"), 3u);
  EXPECT_FALSE(Pattern::compile("a++a").ok());
  EXPECT_FALSE(Pattern::compile("(a++)a").ok());
  EXPECT_FALSE(Pattern::compile("a++b?a").ok());
}

TEST(Pattern, WhatIsNotUnderstoodIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"a(?<=b)", "this kind of '(?'"},
      {"(?>a)", "this kind of '(?'"},
      {"(?=ab)", "lookahead of more than one"},
      {R"(\bx)", R"('\b')"},
      {R"((a)\1)", R"('\1')"},
      {R"(\hx)", R"('\h')"},
      {R"(\p{Klingon})", "property 'Klingon'"},
      {"[a", "'[' without ']'"},
      {"(a", "'(' without ')'"},
      {"a)", "')' without '('"},
      {"*a", "quantifier without anything"},
      {"a**", "a quantifier after a quantifier"},
      {"a{2,1}", "'{'"},
      {"a{99999}", "so large a repetition"},
      {"[z-a]", "runs backwards"},
      {"[[:alpha:]]", "POSIX"},
      {"^a", "'^'"},
      {"\xff", "no UTF-8"},
      {"((a{1,900}){1,900}){1,900}", "its size"},
      {"a\\", "'\\' at the end"},
  };
  for (const auto& [regex, message] : cases) {
    const auto p = Pattern::compile(regex);
    ASSERT_FALSE(p.ok()) << regex;
    EXPECT_THAT(p.error().message, ::testing::HasSubstr(message)) << regex;
  }
  EXPECT_FALSE(Pattern::compile(std::string(100000, '(')).ok());
  EXPECT_FALSE(Pattern::compile(std::string(100000, '[')).ok());
  EXPECT_FALSE(Pattern::compile("(?:a{0,500}b?){0,30}.*x.{500}").ok());
}

TEST(Pattern, CharSets) {
  CharSet s('a', 'c');
  s.add({'x', 'z'});
  s.add({'d', 'f'});
  EXPECT_EQ(s.ranges().size(), 2u);
  EXPECT_TRUE(s.contains('e'));
  EXPECT_FALSE(s.contains('g'));
  EXPECT_TRUE(s.complement().complement() == s);
  EXPECT_TRUE(s.intersection(s.complement()).empty());
  EXPECT_TRUE(CharSet::all().complement().empty());
  EXPECT_EQ(CharSet::property("L")->size(), 141028u);  // Unicode 16
  EXPECT_FALSE(CharSet::property("Xx").has_value());
}

}  // namespace
}  // namespace minfer
