// What a record shows of an answer beside its stamp: texts, messages, ids, ends, usage, compared with the answer
// computed again. Threads: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "chat/answer/format.h"
#include "server/stamp.h"
#include "tokenizer/tokenizer.h"

namespace minfer::cli {

// Where the choices of one stamp stand among those of their record.
struct ShownPlace {
  size_t first = 0;
  bool last = true;  // no stamp comes after it
};

// What is shown of `record`, which holds the stamp: a response body, or what `run --json --stamp` printed; null where
// it is a stamp alone.
nlohmann::json shown_part(const chat::Value& record);

// In words, the first thing that is shown otherwise than it was computed, or recorded to have ended otherwise.
// Requires: the ids and texts of `again` are those of the stamp. `tokenizer` may be null. Log-probabilities and what no
// answer decides are not looked at.
std::optional<std::string> shown_difference(const nlohmann::json& shown, ShownPlace place, const Stamp& stamp,
                                            const Response& again, const Tokenizer* tokenizer,
                                            const chat::AnswerFormat& format);

}  // namespace minfer::cli
