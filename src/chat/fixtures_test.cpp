// Small templates against what Jinja2 renders from them (tests/data/chat/fixtures.json, made by
// tools/make_template_fixtures.py).
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "chat/chat_template.h"
#include "chat/json.h"

namespace minfer::chat {
namespace {

std::tm pinned_clock() {  // Thursday 2026-01-15 12:00:00
  std::tm t{};
  t.tm_year = 126;
  t.tm_mday = 15;
  t.tm_hour = 12;
  t.tm_wday = 4;
  t.tm_yday = 14;
  return t;
}

TEST(Fixtures, RenderAsJinja2Does) {
  std::ifstream in(std::string(MINFER_SOURCE_DIR) + "/tests/data/chat/fixtures.json", std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const auto file = parse_json(text.str());
  ASSERT_TRUE(file.ok()) << file.error().message;
  RenderOptions options;
  options.now = pinned_clock();
  for (const auto& [key, value] : file->find("variables")->as_dict().entries()) {
    if (key.as_string() == "bos_token") {
      options.bos_token = value.as_string();
    } else if (key.as_string() == "eos_token") {
      options.eos_token = value.as_string();
    } else if (key.as_string() != "messages") {
      options.kwargs.emplace_back(key.as_string(), value);
    }
  }
  const Value& messages = *file->find("variables")->find("messages");
  for (const Value& fixture : file->find("cases")->items()) {
    const std::string& source = fixture.find("template")->as_string();
    const auto parsed = ChatTemplate::parse(source);
    if (fixture.find("syntax_error") != nullptr) {  // unknown filters and tests are found when they are used
      EXPECT_FALSE(parsed.ok() && parsed->render(messages, options).ok()) << source;
      continue;
    }
    if (!parsed.ok()) {
      ADD_FAILURE() << source << "\n" << parsed.error().message;
      continue;
    }
    const auto rendered = parsed->render(messages, options);
    if (const Value* error = fixture.find("error")) {
      EXPECT_FALSE(rendered.ok()) << source << "\nrenders " << rendered->text() << "\nexpected " << error->as_string();
      if (!rendered.ok()) {
        EXPECT_TRUE(rendered.error().message.ends_with(error->as_string()))
            << source << "\n"
            << rendered.error().message << "\nexpected " << error->as_string();
      }
    } else if (!rendered.ok()) {
      ADD_FAILURE() << source << "\n" << rendered.error().message;
    } else {
      EXPECT_EQ(rendered->text(), fixture.find("expected")->as_string()) << source;
    }
  }
}

}  // namespace
}  // namespace minfer::chat
