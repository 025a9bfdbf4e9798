#include "engine/model_breakers.h"

namespace minfer {
namespace {

// Ids of `text` where no sentence begins: a vocabulary that puts a space before a text puts it before the line end.
Result<std::vector<int32_t>> encode_within(const Tokenizer& tokenizer, std::string_view text) {
  const EncodeOptions plain = {.add_special = false, .parse_special = false};
  if (!tokenizer.add_space_prefix()) return tokenizer.encode(text, plain);
  const auto ids = MINFER_TRY(tokenizer.encode(fmt::format("\n{}", text), plain));
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string_view piece = tokenizer.piece(ids[i]);
    const size_t at = piece.find('\n');
    if (at == std::string_view::npos) continue;
    if (at + 1 == piece.size())
      return std::vector<int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1, ids.end());
    break;  // the line end is one token with what follows
  }
  return tokenizer.encode(text, plain);
}

}  // namespace

Result<std::vector<std::vector<int32_t>>> dry_breakers(std::span<const std::string> strings,
                                                       const Tokenizer& tokenizer) {
  BreakerVocab vocab;
  vocab.n_vocab = static_cast<int32_t>(tokenizer.n_vocab());
  vocab.piece = [&](int32_t id) {
    return tokenizer.valid(id) && !tokenizer.is_control(id) ? tokenizer.piece(id) : std::string_view();
  };
  vocab.encode = [&](std::string_view text) { return encode_within(tokenizer, text); };
  return dry_breakers(strings, vocab);
}

}  // namespace minfer
