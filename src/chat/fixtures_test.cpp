// Small templates against what Jinja2 renders from them (tests/data/chat/fixtures.json, made by
// tools/make_template_fixtures.py).
#include <gtest/gtest.h>

#include <cstdlib>
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

Result<Value> read_json(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return parse_json(text.str());
}

RenderOptions options_of(const Value& file) {
  RenderOptions options;
  options.now = pinned_clock();
  for (const auto& [key, value] : file.find("variables")->as_dict().entries()) {
    if (key.as_string() == "bos_token") {
      options.bos_token = value.as_string();
    } else if (key.as_string() == "eos_token") {
      options.eos_token = value.as_string();
    } else if (key.as_string() != "messages") {
      options.kwargs.emplace_back(key.as_string(), value);
    }
  }
  return options;
}

TEST(Fixtures, RenderAsJinja2Does) {
  const auto file = read_json(std::string(MINFER_SOURCE_DIR) + "/tests/data/chat/fixtures.json");
  ASSERT_TRUE(file.ok()) << file.error().message;
  const RenderOptions options = options_of(*file);
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

// The other half of tools/compare_templates.py: renders the cases of one file, writes ["ok" or "error", text] a line.
TEST(Fixtures, RenderAFile) {
  const char *given = std::getenv("MINFER_TEMPLATES_IN"), *made = std::getenv("MINFER_TEMPLATES_OUT");
  if (given == nullptr || made == nullptr) GTEST_SKIP() << "MINFER_TEMPLATES_IN and _OUT name no files";
  const auto file = read_json(given);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const RenderOptions options = options_of(*file);
  std::ofstream out(made, std::ios::binary);
  for (const Value& fixture : file->find("cases")->items()) {
    const auto parsed = ChatTemplate::parse(fixture.find("template")->as_string());
    const auto rendered = parsed.ok() ? parsed->render(*file->find("variables")->find("messages"), options)
                                      : Result<Rendered>(parsed.error());
    out << *dump_json(Value::list({Value::string(rendered.ok() ? "ok" : "error"),
                                   Value::string(rendered.ok() ? rendered->text() : rendered.error().message)}))
        << "\n";
  }
}

}  // namespace
}  // namespace minfer::chat
