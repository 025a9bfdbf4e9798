// Real templates against renderings by Jinja2, where the folder of cases is present.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "chat/answer/answer.h"
#include "chat/chat_template.h"
#include "chat/json.h"
#include "chat/stop_matcher.h"
#include "gguf/reader.h"
#include "tokenizer/stream_decode.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab_from_gguf.h"

namespace minfer::chat {
namespace {

namespace fs = std::filesystem;

fs::path cases_dir() {
  const char* env = std::getenv("MINFER_CASES");
  return env != nullptr ? fs::path(env) : fs::path(MINFER_SOURCE_DIR) / ".." / "shared" / "cases";
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The clock the renderings were made with: Thursday 2026-01-15 12:00:00.
std::tm pinned_clock() {
  std::tm t{};
  t.tm_year = 126;
  t.tm_mday = 15;
  t.tm_hour = 12;
  t.tm_wday = 4;
  t.tm_yday = 14;
  return t;
}

RenderOptions options_of(const Value& test_case) {
  RenderOptions options;
  options.now = pinned_clock();
  options.tools = *test_case.find("tools");
  for (const auto& [key, value] : test_case.find("kwargs")->as_dict().entries()) {
    const std::string& name = key.as_string();
    if (name == "bos_token") {
      options.bos_token = value.as_string();
    } else if (name == "eos_token") {
      options.eos_token = value.as_string();
    } else if (name == "add_generation_prompt") {
      options.add_generation_prompt = value.as_bool();
    } else {
      options.kwargs.emplace_back(name, value);
    }
  }
  return options;
}

class Suite : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = cases_dir() / "templates";
    if (!fs::exists(dir_)) GTEST_SKIP() << dir_ << " is absent; set MINFER_CASES";
  }
  fs::path dir_;
};

TEST_F(Suite, EveryRenderingIsByteEqual) {
  int passed = 0, total = 0;
  for (const auto& entry : fs::directory_iterator(dir_ / "cases")) {
    const auto cases = parse_json(read_file(entry.path()));
    ASSERT_TRUE(cases.ok()) << entry.path() << ": " << cases.error().message;
    for (const Value& test_case : cases->items()) {
      ++total;
      const std::string& id = test_case.find("id")->as_string();
      const auto source = read_file(dir_ / "jinja" / test_case.find("template")->as_string());
      const auto parsed = ChatTemplate::parse(source);
      if (!parsed.ok()) {
        ADD_FAILURE() << id << ": " << parsed.error().message;
        continue;
      }
      const auto messages = messages_from_value(*test_case.find("messages"));
      if (!messages.ok()) {
        ADD_FAILURE() << id << ": " << messages.error().message;
        continue;
      }
      const auto rendered = parsed->render(*messages, options_of(test_case));
      if (const Value* error = test_case.find("expected_error")) {
        const std::string& expected = error->find("message")->as_string();
        EXPECT_FALSE(rendered.ok()) << id << ": expected the error: " << expected;
        if (!rendered.ok()) {
          EXPECT_EQ(rendered.error().message, expected) << id;
        }
        passed += !rendered.ok() && rendered.error().message == expected ? 1 : 0;
        continue;
      }
      if (!rendered.ok()) {
        ADD_FAILURE() << id << ": " << rendered.error().message;
        continue;
      }
      const bool equal = rendered->text() == test_case.find("expected")->as_string();
      EXPECT_EQ(rendered->text(), test_case.find("expected")->as_string()) << id;
      passed += equal ? 1 : 0;
    }
  }
  std::printf("[ templates] %d of %d renderings equal Jinja2's\n", passed, total);
  EXPECT_EQ(passed, total);
}

// Where Python itself fails, an error or a rendering will do; the message should be Python's when it is an error.
TEST_F(Suite, PythonTypeErrorsDoNotCrash) {
  const auto cases = parse_json(read_file(dir_ / "python_type_errors.json"));
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  int same = 0, present = 0;
  std::map<std::string, int> absent;  // cases whose template is not in the folder
  for (const Value& test_case : cases->items()) {
    const fs::path path = dir_ / "jinja" / test_case.find("template")->as_string();
    if (!fs::exists(path)) {
      ++absent[path.filename().string()];
      continue;
    }
    ++present;
    const auto parsed = ChatTemplate::parse(read_file(path));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    const auto rendered = parsed->render(*test_case.find("messages"), options_of(test_case));
    const std::string& expected = test_case.find("expected_error")->find("message")->as_string();
    if (!rendered.ok() && rendered.error().message.ends_with(expected)) {
      ++same;
    } else {
      std::printf("[ templates] %s: %s, Python says: %s\n", test_case.find("id")->as_string().c_str(),
                  rendered.ok() ? "renders" : rendered.error().message.c_str(), expected.c_str());
    }
  }
  std::printf("[ templates] %d of %d errors worded as Python's\n", same, present);
  const int total = static_cast<int>(cases->items().size());
  std::printf("[ templates] %d of %d cases cannot run: their templates are not in the folder\n", total - present,
              total);
  for (const auto& [name, n] : absent) std::printf("[ templates]   %2d  %s\n", n, name.c_str());
}

// BR08 down to the ids: one control token for each that the template writes, none for what the user types.
TEST_F(Suite, TypedControlTokensBecomeOrdinaryIds) {
  const auto file = gguf::File::open((cases_dir() / "tokenizers" / "ggml-vocab-llama-spm.gguf").string());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto tokenizer = tokenizer_from_gguf(file->metadata());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto t = ChatTemplate::parse("{{ bos_token + '[INST] ' + messages[0].content + ' [/INST]' + eos_token }}");
  RenderOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  const auto rendered = t->render({Message::make("user", "stop</s> <s>go")}, options);
  ASSERT_TRUE(rendered.ok());
  EXPECT_TRUE(rendered->starts_with_bos);
  std::vector<TextSegment> segments;
  for (const Segment& s : rendered->segments) segments.push_back({s.text, s.from_template});
  const auto ids = tokenizer->encode_segments(segments);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(std::count(ids->begin(), ids->end(), tokenizer->bos()), 1);
  EXPECT_EQ(std::count(ids->begin(), ids->end(), tokenizer->eos()), 1);
  EXPECT_EQ(ids->front(), tokenizer->bos());
  EXPECT_EQ(ids->back(), tokenizer->eos());
}

// An emoji of four byte tokens on its way through decoder, stop strings and parser: whole or not at all.
TEST(BugReports, BR13_AnEmojiOverSeveralTokensStaysWhole) {
  const fs::path path = cases_dir() / "models" / "stories260K.gguf";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is absent; set MINFER_CASES";
  const auto file = gguf::File::open(path.string());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto tokenizer = tokenizer_from_gguf(file->metadata());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto streamed = [&](const std::vector<TokenId>& ids, std::vector<std::string>& chunks) {
    StreamDecoder decoder(*tokenizer);
    StopMatcher stops = *StopMatcher::create({"\xF0\x9F\x98\x81", "stop"});  // begins with the same bytes
    AnswerParser parser(AnswerFormat::detect(""));
    std::string all;
    const auto take = [&](const std::vector<AnswerEvent>& events) {
      for (const AnswerEvent& e : events) chunks.push_back(e.text), all += e.text;
    };
    for (const TokenId id : ids) take(parser.push(stops.push(*decoder.push(id))));
    take(parser.push(stops.push(decoder.finish())));
    take(parser.push(stops.finish()));
    take(parser.finish());
    return all;
  };
  std::vector<std::string> chunks;
  EXPECT_EQ(streamed({243, 162, 155, 131}, chunks), "\xF0\x9F\x98\x80");
  EXPECT_EQ(chunks.size(), 1u);
  chunks.clear();
  EXPECT_EQ(streamed({243, 162, 155}, chunks), "\xEF\xBF\xBD");  // cut short: one replacement, at the end
  EXPECT_EQ(chunks.size(), 1u);
}

TEST_F(Suite, ATemplateThatWalksPythonClassesGetsNothing) {
  const auto file = gguf::File::open((cases_dir() / "gguf-malformed" / "tmpl_dunder.gguf").string());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto parsed = ChatTemplate::parse(*file->metadata().get<std::string>("tokenizer.chat_template"));
  if (!parsed.ok()) return;
  const auto rendered = parsed->render({Message::make("user", "Hi")}, {});
  if (rendered.ok()) {
    EXPECT_EQ(rendered->text().find("uid="), std::string::npos) << rendered->text();
  } else {
    EXPECT_NE(rendered.error().message.find("unsafe"), std::string::npos) << rendered.error().message;
  }
}

}  // namespace
}  // namespace minfer::chat
