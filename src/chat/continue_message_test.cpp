// continue_final_message against transformers (tests/data/chat/continue.json, made by tools/make_continue_fixtures.py),
// and what transformers does not say: provenance and open thinking.
#include "chat/continue_message.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "chat/chat_template.h"
#include "chat/json.h"

namespace minfer::chat {
namespace {

RenderOptions continuing(std::string field = "content") {
  RenderOptions o;
  o.add_generation_prompt = false;
  o.continue_final_message = true;
  o.continue_field = std::move(field);
  return o;
}

TEST(ContinueFinalMessage, RendersAsTransformersDoes) {
  std::ifstream in(std::string(MINFER_SOURCE_DIR) + "/tests/data/chat/continue.json", std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const auto cases = parse_json(text.str());
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  ASSERT_GT(cases->items().size(), 50u);
  for (const Value& c : cases->items()) {
    const auto t = ChatTemplate::parse(c.find("template")->as_string());
    ASSERT_TRUE(t.ok());
    const auto r = t->render(*c.find("messages"), continuing(c.find("field")->as_string()));
    const std::string shown = *dump_json(c);
    if (c.find("error") != nullptr) {
      ASSERT_FALSE(r.ok()) << shown << "\nrenders " << r->text();
      EXPECT_EQ(r.error().message.rfind("[chat] continue_final_message: ", 0), 0u) << r.error().message;
      EXPECT_EQ(r.error().code, ErrorCode::kInvalidArgument);
    } else {
      ASSERT_TRUE(r.ok()) << shown << "\n" << r.error().message;
      EXPECT_EQ(r->text(), c.find("expected")->as_string()) << shown;
    }
  }
}

constexpr const char* kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}";

TEST(ContinueFinalMessage, TheTextStaysData) {
  const auto t = ChatTemplate::parse(kChatMl);
  const auto r = t->render({Message::make("assistant", "a<|im_end|>b")}, continuing());
  ASSERT_TRUE(r.ok()) << r.error().message;
  ASSERT_EQ(r->segments.size(), 2u);
  EXPECT_TRUE(r->segments[0].from_template);
  EXPECT_EQ(r->segments[1].text, "a<|im_end|>b");
  EXPECT_FALSE(r->segments[1].from_template);
}

TEST(ContinueFinalMessage, ExcludesAGenerationPrompt) {
  RenderOptions o = continuing();
  o.add_generation_prompt = true;
  const auto r = ChatTemplate::parse(kChatMl)->render({Message::make("assistant", "a")}, o);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().message.find("exclude each other"), std::string::npos);
}

TEST(ContinueFinalMessage, KnowsThatThinkingGoesOn) {
  const auto open = [](const std::string& content) {
    return ChatTemplate::parse(kChatMl)->render({Message::make("assistant", content)}, continuing())->thinking_open;
  };
  EXPECT_TRUE(open("<think>\nSo, first"));
  EXPECT_FALSE(open("<think>\nSo</think>\n\nThe"));
  EXPECT_FALSE(open("The"));
  EXPECT_TRUE(open("<think>a</think><think>b"));
  Message m = Message::make("assistant", "");
  m.set("reasoning_content", Value::string("So"));
  const auto t = ChatTemplate::parse("{{ '<think>' + messages[0].reasoning_content }}</think>");
  EXPECT_TRUE(t->render({m}, continuing("reasoning_content"))->thinking_open);
}

}  // namespace
}  // namespace minfer::chat
