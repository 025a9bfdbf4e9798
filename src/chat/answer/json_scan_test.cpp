// The scanner against the JSON parser, on random texts of JSON's own characters.
#include "chat/answer/json_scan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "chat/json.h"

namespace minfer::chat::answer {
namespace {

// Whether `text` as a whole is one JSON value.
bool scans(const std::string& text) {
  JsonScan scan;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (scan.step(static_cast<uint8_t>(text[i]))) {
      case JsonScan::Step::kMore: break;
      case JsonScan::Step::kDone: return text.find_first_not_of(" \t\r\n", i + 1) == text.npos;
      case JsonScan::Step::kDoneBefore: return text.find_first_not_of(" \t\r\n", i) == text.npos;
      case JsonScan::Step::kBad: return false;
    }
  }
  return scan.started() && scan.whole_at_end();
}

TEST(JsonScan, AgreesWithTheParser) {
  const std::string pieces[] = {"{",       "}",  "[",     "]",         ",",      ":",    "\"a\"", "\"\\n\\u0041\"",
                                "\"\\x\"", "0",  "-1",    "01",        "1.",     ".5",   "1e5",   "1E+",
                                "-",       " ",  "\n",    "true",      "false",  "null", "nul",   "\"",
                                "{}",      "[]", "[1,2]", "{\"a\":1}", "1.5e-3", "'a'",  "\t"};
  std::mt19937 rng(3);
  int good = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string text;
    for (size_t n = 1 + rng() % 6; n > 0; --n) text += pieces[rng() % std::size(pieces)];
    const auto parsed = parse_json(text);
    const bool expected = parsed.ok();
    // That a number is too large for a float is the parser's to find.
    if (!expected && parsed.error().message.find("overflow") != std::string::npos) continue;
    ASSERT_EQ(scans(text), expected) << text;
    good += expected ? 1 : 0;
  }
  EXPECT_GT(good, 2000);
}

TEST(JsonScan, BoundsNesting) {
  EXPECT_TRUE(scans(std::string(128, '[') + std::string(128, ']')));
  EXPECT_FALSE(scans(std::string(129, '[') + std::string(129, ']')));
}

}  // namespace
}  // namespace minfer::chat::answer
