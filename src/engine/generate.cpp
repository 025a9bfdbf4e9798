// The generation loop.
#include "engine/generate.h"

#include "sample/sampler.h"
#include "tokenizer/stream_decode.h"
#include "trace/tracer.h"

namespace minfer {
namespace {

double ms_since(int64_t t0) { return static_cast<double>(now_ns() - t0) * 1e-6; }

}  // namespace

double GenerateStats::prefill_tokens_per_second() const {
  return prefill_ms > 0 ? static_cast<double>(prompt_tokens - cached_tokens) / prefill_ms * 1e3 : 0;
}

double GenerateStats::decode_tokens_per_second() const {
  return decode_ms > 0 ? static_cast<double>(forward_ms.size()) / decode_ms * 1e3 : 0;
}

Result<Generated> generate(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options) {
  MINFER_TRY(check_sampling(options.sampling));
  const Tokenizer* tokenizer = session.runner().model().tokenizer();
  Generated out;
  GenerateStats& stats = out.stats;
  const int64_t start = now_ns();
  const size_t cached = session.match(prompt);
  stats.prompt_tokens = static_cast<int64_t>(prompt.size());
  stats.cached_tokens = static_cast<int64_t>(cached);
  auto cancelled = [&] { return options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed); };

  auto first = session.feed(prompt.subspan(cached), [&](size_t done, size_t total) {
    return !cancelled() && (!options.on_prefill || options.on_prefill(done, total));
  });
  if (!first.ok()) {
    if (first.error().code != ErrorCode::kCancelled) return std::move(first).error();
    out.finish = FinishReason::kCancelled;
    return out;
  }
  std::span<const float> logits = *first;
  stats.prefill_ms = ms_since(start);

  Sampler sampler(options.sampling);
  std::optional<StreamDecoder> decoder;
  if (tokenizer != nullptr) decoder.emplace(*tokenizer, DecodeOptions{options.show_control, false});
  auto emit = [&](std::string text) {
    if (text.empty()) return;
    out.text += text;
    if (options.on_text) options.on_text(text);
  };
  std::vector<int32_t> history(prompt.begin(), prompt.end());
  int64_t decode_start = 0;
  for (;;) {
    if (options.max_tokens >= 0 && out.ids.size() >= static_cast<size_t>(options.max_tokens)) {
      out.finish = FinishReason::kLength;
      break;
    }
    if (cancelled()) {
      out.finish = FinishReason::kCancelled;
      break;
    }
    const int32_t id = MINFER_TRY(sampler.sample(logits, history, history.size()));
    if (out.ids.empty()) {
      stats.time_to_first_token_ms = ms_since(start);
      decode_start = now_ns();
    }
    if (tokenizer != nullptr && tokenizer->valid(id) && tokenizer->is_eog(id) && !options.ignore_eos) {
      out.finish = FinishReason::kStop;
      break;
    }
    out.ids.push_back(id);
    history.push_back(id);
    // Rows of the table beyond the vocabulary are padding and have no text.
    if (decoder && tokenizer->valid(id)) emit(MINFER_TRY(decoder->push(id)));
    if (options.max_tokens >= 0 && out.ids.size() >= static_cast<size_t>(options.max_tokens)) continue;
    if (session.room() < 1) {
      out.finish = FinishReason::kContext;
      break;
    }
    const int64_t t0 = now_ns();
    logits = MINFER_TRY(session.feed({&id, 1}));
    stats.forward_ms.push_back(ms_since(t0));
  }
  if (decoder) emit(decoder->finish());
  if (decode_start != 0) stats.decode_ms = ms_since(decode_start);
  stats.generated_tokens = static_cast<int64_t>(out.ids.size());
  return out;
}

}  // namespace minfer
