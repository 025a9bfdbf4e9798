// The streaming decoder against Python's bytes.decode("utf-8", errors="replace").
#include "tokenizer/stream_decode.h"

#include <gtest/gtest.h>

#include <random>

namespace minfer {
namespace {

// Answers by CPython 3.11.
TEST(Utf8Replace, AsPythonDoes) {
  const std::string r = "\xef\xbf\xbd";
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"abc", "abc"},
      {"\xc3\xa9\xf0\x9f\x98\x80", "\xc3\xa9\xf0\x9f\x98\x80"},
      {"\xf0\x9f\x98", r},
      {"\xf0\x9f\x98"
       "a",
       r + "a"},
      {"\xf0\x9f", r},
      {"\xff\xfe", r + r},
      {"\x80\x80", r + r},
      {"\xc0\xaf", r + r},                  // overlong
      {"\xe0\x80\x80", r + r + r},          // overlong
      {"\xed\xa0\x80", r + r + r},          // a surrogate
      {"\xf4\x90\x80\x80", r + r + r + r},  // beyond U+10FFFF
      {"\xf5\x80", r + r},
      {"\xe2\x82", r},
      {"\xe2\x82\xe2\x82\xac", r + "\xe2\x82\xac"},
      {"\xc3\xc3\xa9", r + "\xc3\xa9"},
      {"a\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "a" + r + r + r + r + "A"},
  };
  for (const auto& [bytes, want] : cases) EXPECT_EQ(utf8_replace(bytes), want) << ::testing::PrintToString(bytes);
}

TEST(Utf8Replace, PiecewiseIsTheSame) {
  std::mt19937 rng(11);
  constexpr unsigned char kBytes[] = {'a', 0x80, 0x90, 0xa0, 0xbf, 0xc2, 0xc3, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0xff};
  for (int i = 0; i < 5000; ++i) {
    std::string bytes;
    for (size_t n = rng() % 12; n > 0; --n) bytes += static_cast<char>(kBytes[rng() % std::size(kBytes)]);
    std::string held, out;
    for (const char c : bytes) {
      held += c;
      utf8_take_settled(held, out);
      EXPECT_LE(held.size(), 3u);
    }
    if (!held.empty()) out += "\xef\xbf\xbd";
    EXPECT_EQ(out, utf8_replace(bytes)) << ::testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace minfer
