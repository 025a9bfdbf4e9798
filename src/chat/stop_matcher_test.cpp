// Stop strings against the plain definition, by brute force over random texts, stops and cuts.
#include "chat/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace minfer::chat {
namespace {

StopMatcher make(std::vector<std::string> stops) {
  auto m = StopMatcher::create(std::move(stops));
  EXPECT_TRUE(m.ok()) << m.error().message;
  return *m;
}

struct Streamed {
  std::string text;
  std::vector<std::string> pieces;
  bool stopped = false;
};

Streamed stream(StopMatcher m, const std::vector<std::string>& pieces) {
  Streamed out;
  for (const std::string& piece : pieces) out.pieces.push_back(m.push(piece));
  out.pieces.push_back(m.finish());
  for (const std::string& piece : out.pieces) out.text += piece;
  out.stopped = m.stopped();
  return out;
}

// The definition: the first end of any stop, and there the longest stop.
std::string cut_plainly(const std::string& text, const std::vector<std::string>& stops, bool& stopped) {
  for (size_t end = 0; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& s : stops) {
      if (std::string_view(text).substr(0, end).ends_with(s)) longest = std::max(longest, s.size());
    }
    stopped = longest > 0;
    if (stopped) return text.substr(0, end - longest);
  }
  return text;
}

TEST(StopMatcher, IsTheDefinitionOnRandomStreams) {
  std::mt19937 rng(7);
  const auto random_text = [&](size_t max, size_t letters) {
    std::string s;
    for (size_t n = rng() % (max + 1); n > 0; --n) s += static_cast<char>('a' + rng() % letters);
    return s;
  };
  int hits = 0;
  for (int round = 0; round < 20000; ++round) {
    const size_t letters = 1 + rng() % 3;
    std::vector<std::string> stops;
    for (size_t n = rng() % 5; n > 0; --n) stops.push_back(random_text(5, letters) + "a");
    const std::string text = random_text(30, letters);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t n = 1 + rng() % 4;
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    bool stopped = false;
    const std::string expected = cut_plainly(text, stops, stopped);
    const Streamed got = stream(make(stops), pieces);
    ASSERT_EQ(got.text, expected) << text;
    ASSERT_EQ(got.stopped, stopped) << text;
    hits += stopped ? 1 : 0;
  }
  EXPECT_GT(hits, 5000);
}

TEST(StopMatcher, HoldsBackNoMoreThanItMust) {
  StopMatcher m = make({"abc", "bd"});
  EXPECT_EQ(m.push("xa"), "x");
  EXPECT_EQ(m.push("b"), "");
  EXPECT_EQ(m.push("b"), "ab");  // "b" may still become "bd"
  EXPECT_EQ(m.held_bytes(), 1u);
  EXPECT_EQ(m.push("y"), "by");
  EXPECT_EQ(m.push("ab"), "");
  EXPECT_EQ(m.finish(), "ab");
}

TEST(StopMatcher, NamesTheStopAndStaysStopped) {
  StopMatcher m = make({"\n\n", "\n\nUser:"});
  EXPECT_EQ(m.push("Hi\n\nUser: x"), "Hi");
  EXPECT_TRUE(m.stopped());
  EXPECT_EQ(m.stop(), "\n\n");
  EXPECT_EQ(m.push("more"), "");
  EXPECT_EQ(m.pass("more"), "");
  EXPECT_EQ(m.finish(), "");
}

TEST(StopMatcher, BeforeMinTokensStopsDoNotCount) {
  StopMatcher m = make({"END"});
  EXPECT_EQ(m.pass("ENDEN"), "ENDEN");
  EXPECT_EQ(m.push("D."), "D.");  // it began in what was passed
  EXPECT_EQ(m.push("EN"), "");
  EXPECT_EQ(m.pass("D"), "END");
  EXPECT_EQ(m.push("END"), "");
  EXPECT_TRUE(m.stopped());
}

TEST(StopMatcher, RefusesWhatItCannotMean) {
  EXPECT_FALSE(StopMatcher::create({"a", ""}).ok());
  EXPECT_FALSE(StopMatcher::create(std::vector<std::string>(kMaxStops + 1, "a")).ok());
  EXPECT_FALSE(StopMatcher::create({std::string(kMaxStopBytes + 1, 'a')}).ok());
  EXPECT_TRUE(StopMatcher::create(std::vector<std::string>(kMaxStops, "a")).ok());
  EXPECT_EQ(make({}).push("abc"), "abc");
}

// Each byte of this text makes a matcher without failure links start over.
TEST(StopMatcher, IsLinear) {
  const std::string run(20000, 'a');
  StopMatcher m = make({run + "b", run + "c"});
  std::string out;
  for (int i = 0; i < 50; ++i) out += m.push(run);
  out += m.finish();
  EXPECT_EQ(out.size(), 50 * run.size());
}

TEST(BugReports, BR14_TheStartOfAStopStringDoesNotLeak) {
  const Streamed s = stream(make({"DEFGHIJ"}), {" ABC", "DEF", "G", "HI", "J", "KL"});
  EXPECT_EQ(s.text, " ABC");
  EXPECT_TRUE(s.stopped);
  EXPECT_EQ(s.pieces, (std::vector<std::string>{" ABC", "", "", "", "", "", ""}));
  const Streamed released = stream(make({"DEFGHIJ"}), {"DEF", "G", "HI", "X", "Y"});
  EXPECT_EQ(released.pieces, (std::vector<std::string>{"", "", "", "DEFGHIX", "Y", ""}));
  EXPECT_FALSE(released.stopped);
}

TEST(BugReports, BR16_TextAfterTheStopStringDoesNotLeak) {
  const std::vector<std::string> tokens = {"one", ",", " two", ",", " three", ",", " four", ",", " five", ",", " six"};
  const Streamed s = stream(make({"five"}), tokens);
  EXPECT_EQ(s.text, "one, two, three, four, ");
  EXPECT_TRUE(s.stopped);
  EXPECT_EQ(stream(make({"six", "four", "five"}), tokens).text, "one, two, three, ");
  EXPECT_EQ(stream(make({"five"}), {"one, two, three, four, five, six"}).text, s.text);  // unstreamed is equal
}

}  // namespace
}  // namespace minfer::chat
