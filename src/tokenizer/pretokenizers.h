// The pre-tokenizers that tokenizer.ggml.pre names.
// Source:  the pre_tokenizer sections of the models' tokenizer.json.
// Threads: read-only.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "minfer/error.h"
#include "tokenizer/pretokenize.h"

namespace minfer {

struct NamedPretokenizer {
  std::string_view name;
  // The expressions, each cutting the pieces of the one before; two stand for steps of another kind (see steps()).
  std::span<const std::string_view> regexes;
  bool nfc = false;            // the text is brought to NFC first
  bool ignore_merges = false;  // a piece that is a token as a whole is that token, whatever the merges say
  bool add_bos = false;        // where the file does not say
  bool add_sep = false;        // likewise: the separator token stands after the text
  bool characters = false;     // merges start from characters, spaces spelled U+2581, not from byte symbols

  Result<std::vector<SplitStep>> steps() const;
};

// nullptr when there is none of that name.
const NamedPretokenizer* find_pretokenizer(std::string_view name);

// "bailingmoe, bloom, ...": for messages.
std::string pretokenizer_names();
std::span<const NamedPretokenizer> named_pretokenizers();  // ascending by name

}  // namespace minfer
