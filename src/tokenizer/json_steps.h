// The parts of a tokenizer.json around its vocabulary, as TextRules (tokenizer_json.h says what for).
// Errors:  what is not supported, by name. Threads: pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/rules.h"

namespace minfer {

// A field of an object: its value or `fallback` where it is absent or null; an error where its type is another.
Result<bool> json_flag(const nlohmann::json& j, const char* key, bool fallback, const char* where);
Result<std::string> json_text(const nlohmann::json& j, const char* key, const std::string& fallback, const char* where);

Status read_normalizer(const nlohmann::json& j, std::vector<Normalizer>& steps, int depth = 0);

struct JsonPreTokenizer {
  std::vector<PreStep> steps;
  bool byte_level = false;
};
Status read_pre_tokenizer(const nlohmann::json& j, JsonPreTokenizer& out, int depth = 0);

struct JsonDecoder {
  bool present = false, byte_level = false, byte_fallback = false, marks_spaces = false, strip_first = false;
  bool word_piece = false, cleanup = false;
};
Status read_decoder(const nlohmann::json& j, JsonDecoder& out, int depth = 0);

// Fills before and after with the ids that the template for one text names.
Status read_post_processor(const nlohmann::json& j, std::vector<TokenId>& before, std::vector<TokenId>& after,
                           int depth = 0);

}  // namespace minfer
