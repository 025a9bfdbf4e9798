#include "chat/prompt_ids.h"

namespace minfer::chat {

void set_special_tokens(const Tokenizer& tokenizer, RenderOptions& options) {
  if (tokenizer.bos() != kNoToken) options.bos_token = tokenizer.text(tokenizer.bos());
  if (tokenizer.eos() != kNoToken) options.eos_token = tokenizer.text(tokenizer.eos());
}

Result<std::vector<int32_t>> prompt_ids(const Tokenizer& tokenizer, const Rendered& rendered) {
  std::vector<TextSegment> segments;
  segments.reserve(rendered.segments.size());
  for (const auto& s : rendered.segments) segments.push_back({s.text, s.from_template});
  auto ids = MINFER_TRY(tokenizer.encode_segments(segments, /*add_special=*/false));
  const int32_t bos = tokenizer.bos();
  if (tokenizer.add_bos() && bos != kNoToken && (ids.empty() || ids.front() != bos)) ids.insert(ids.begin(), bos);
  return ids;
}

}  // namespace minfer::chat
