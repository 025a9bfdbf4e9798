// Messages, tools and JSON.
#include "chat/message.h"

#include <gtest/gtest.h>

#include "chat/json.h"

namespace minfer::chat {
namespace {

std::string round_trip(const std::string& json) {
  const auto v = parse_json(json);
  if (!v.ok()) return "error: " + v.error().message;
  const auto out = dump_json(*v);
  return out.ok() ? *out : "error: " + out.error().message;
}

TEST(Json, KeepsOrderNumbersAndText) {
  EXPECT_EQ(round_trip(R"({"b":1,"a":[true,null,1.0,-0.5,1e100],"é":"\u00e9\n\"\\"})"),
            R"({"b": 1, "a": [true, null, 1.0, -0.5, 1e+100], "é": "é\n\"\\"})");
  EXPECT_EQ(
      round_trip("[9223372036854775807,-9223372036854775808,18446744073709551615,123456789012345678901234567890]"),
      "[9223372036854775807, -9223372036854775808, 18446744073709551615, 123456789012345678901234567890]");
  EXPECT_EQ(round_trip(R"({"a":1,"b":2,"a":3})"), R"({"a": 3, "b": 2})");  // the last value, the first place
  EXPECT_EQ(round_trip("\"x\""), "\"x\"");
}

TEST(Json, RefusesWithAPlace) {
  EXPECT_NE(round_trip("[1,").find("error: [json] byte"), std::string::npos);
  EXPECT_NE(round_trip("").find("error"), std::string::npos);
  EXPECT_NE(round_trip("[1] x").find("error"), std::string::npos);
  EXPECT_NE(round_trip("NaN").find("error"), std::string::npos);
  EXPECT_NE(round_trip("\"\xff\"").find("error"), std::string::npos);
  EXPECT_NE(round_trip("1e999").find("error"), std::string::npos);
  const std::string deep = std::string(100000, '[');
  EXPECT_NE(round_trip(deep).find("nested deeper than 128 levels"), std::string::npos);
  EXPECT_EQ(round_trip(std::string(128, '[') + std::string(128, ']')), std::string(128, '[') + std::string(128, ']'));
}

TEST(Dict, FindsAmongManyAndMixedKeys) {
  Dict d;
  for (int i = 0; i < 100; ++i) d.set(fmt::format("k{}", i), Value::integer(i));
  d.set(Value::integer(1), Value::string("one"));
  d.set(Value::real(1.0), Value::string("uno"));  // the same key
  EXPECT_EQ(d.size(), 101u);
  EXPECT_EQ(d.find("k77")->as_int(), 77);
  EXPECT_EQ(d.find(Value::boolean(true))->as_string(), "uno");
  EXPECT_EQ(d.find("k100"), nullptr);
  EXPECT_EQ(d.find(Value::string("k5"))->as_int(), 5);
}

TEST(Message, ReadsWhatClientsSend) {
  const auto messages = messages_from_json(R"({"model":"m","messages":[
    {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
    {"role":"assistant","content":null,"reasoning_content":"hm",
     "tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{"x":1}}}]},
    {"role":"tool","tool_call_id":"c1","name":"f","content":"42","extra":{"kept":true}}]})");
  ASSERT_TRUE(messages.ok()) << messages.error().message;
  EXPECT_EQ((*messages)[0].content_text(), "ab");
  EXPECT_EQ((*messages)[1].content_text(), "");
  EXPECT_EQ((*messages)[1].reasoning_content(), "hm");
  const auto calls = (*messages)[1].tool_calls();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].name, "f");
  EXPECT_EQ(calls[0].arguments.find("x")->as_int(), 1);
  EXPECT_EQ((*messages)[2].tool_call_id(), "c1");
  EXPECT_TRUE((*messages)[2].value().find("extra")->find("kept")->as_bool());
}

TEST(Message, NamesWhatIsWrong) {
  const auto error = [](const std::string& json) {
    const auto r = messages_from_json(json);
    return r.ok() ? std::string("ok") : r.error().message;
  };
  EXPECT_EQ(error("5"), "[chat] messages: found int, expected a list of messages");
  EXPECT_EQ(error(R"([{"role":"user"},3])"), "[chat] message 1: found int, expected an object");
  EXPECT_EQ(error("[{}]"), "[chat] message 0: 'role' is missing");
  EXPECT_EQ(error(R"([{"role":1}])"), "[chat] message 0: 'role' is int, expected a non-empty string");
  EXPECT_EQ(error(R"([{"role":"user","content":5}])"),
            "[chat] message 0: 'content' is int, expected a string, null or a list of parts");
  EXPECT_EQ(error(R"([{"role":"user","content":[{"type":"text"}]}])"),
            "[chat] message 0: 'content' is null, expected the 'text' of a text part to be a string");
  EXPECT_EQ(error(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{}}]}])"),
            "[chat] message 0: part 1 of 'content' is of type 'image_url', expected 'text'");
  EXPECT_EQ(error(R"([{"role":"assistant","tool_calls":[{"function":{}}]}])"),
            "[chat] message 0: 'tool_calls[].function.name' is null, expected a string");
  EXPECT_FALSE(tools_from_json("[1]").ok());
  EXPECT_TRUE(tools_from_json("null").ok());
  EXPECT_EQ(tools_from_json(R"({"tools":[{"type":"function"}]})")->items().size(), 1u);
}

TEST(Text, SlicesKeepOrigins) {
  Text t("ab", true);
  t.append("cd", false);
  t.append("ef", true);
  const Text s = t.slice(1, 4);
  std::string seen;
  s.for_each_run([&](std::string_view piece, bool markup) { seen += std::string(piece) + (markup ? "+" : "-"); });
  EXPECT_EQ(seen, "b+cd-e+");
  EXPECT_TRUE(t.is_markup(1));
  EXPECT_FALSE(t.is_markup(2));
  EXPECT_FALSE(t.is_markup(3));
  EXPECT_TRUE(t.is_markup(4));
  EXPECT_TRUE(t.slice(4, 2).all_markup());
  EXPECT_TRUE(t.slice(2, 2).all_data());
}

}  // namespace
}  // namespace minfer::chat
