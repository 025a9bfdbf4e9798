// DRY's breakers with real vocabularies: every way in which the tokenizer writes a breaker is found in a history.
#include "engine/model_breakers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "gguf/reader.h"
#include "sample/dry.h"
#include "tokenizer/vocab_from_gguf.h"

namespace minfer {
namespace {

class ModelBreakers : public ::testing::TestWithParam<const char*> {};

TEST_P(ModelBreakers, AreFoundInEncodedText) {
  const char* env = std::getenv("MINFER_CASES");
  const std::string cases = env != nullptr ? env : MINFER_SOURCE_DIR "/../shared/cases";
  const std::string path = cases + "/tokenizers/ggml-vocab-" + GetParam() + ".gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const auto file = gguf::File::open(path);
  ASSERT_TRUE(file.ok());
  const auto data = vocab_from_gguf(file->metadata());
  ASSERT_TRUE(data.ok());
  const auto t = Tokenizer::create(*data);
  ASSERT_TRUE(t.ok());
  const std::vector<std::string> strings = {"\n", ":", "\"", "</turn>"};
  const auto breakers = dry_breakers(strings, *t);
  ASSERT_TRUE(breakers.ok()) << breakers.error().message;
  EXPECT_GE(breakers->size(), strings.size());
  const BreakerTrie trie(*breakers);
  for (const auto& s : strings) {
    for (const std::string before : {"", "words", "words ", "x<", "!"}) {
      for (const std::string after : {"", " some more words here"}) {
        const auto ids = t->encode(before + s + after, {.add_special = false});
        ASSERT_TRUE(ids.ok());
        const size_t since = trie.since_break(*ids);
        // What stands after the break is at most what was written after it.
        std::string rest;
        for (size_t i = ids->size() - since; i < ids->size(); ++i) rest += t->piece((*ids)[i]);
        EXPECT_LE(rest.size(), after.size()) << before << s << after << " -> " << rest;
        EXPECT_TRUE(after.ends_with(rest)) << rest;
      }
    }
  }
  const auto plain = t->encode("words without any of them", {.add_special = false});
  EXPECT_EQ(trie.since_break(*plain), plain->size());
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, ModelBreakers,
                         ::testing::Values("llama-spm", "gpt-2", "deepseek-coder", "falcon"));

}  // namespace
}  // namespace minfer
