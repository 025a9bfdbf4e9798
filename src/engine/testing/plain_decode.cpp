#include "engine/testing/plain_decode.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/logprobs.h"
#include "sample/sampler.h"
#include "tokenizer/stream_decode.h"

namespace minfer::testing {

std::unique_ptr<Model> open_golden(const std::string& family) {
  auto m = Model::open(std::string(MINFER_SOURCE_DIR) + "/tests/golden/" + family + "/model.gguf");
  if (!m.ok()) {
    ADD_FAILURE() << m.error().message;
    return nullptr;
  }
  return std::move(m).value();
}

PlainDecoder::PlainDecoder(const Model& model, DType type_k, DType type_v, int32_t n_ctx) {
  RunnerOptions o;
  o.n_threads = 1, o.n_ctx = n_ctx, o.type_k = type_k, o.type_v = type_v;
  auto r = Runner::create(model, o);
  if (!r.ok()) {
    ADD_FAILURE() << r.error().message;
    return;
  }
  runner_ = std::move(r).value();
}

Response PlainDecoder::answer(const Request& request) {
  Response response;
  std::vector<Scored> all;
  for (int32_t c = 0; c < std::max(request.n, request.best_of); ++c) all.push_back(choice(request, c, response));
  if (request.best_of > request.n)
    std::stable_sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) { return a.mean > b.mean; });
  for (int32_t c = 0; c < request.n; ++c) response.choices.push_back(std::move(all[static_cast<size_t>(c)].choice));
  return response;
}

Embeddings PlainDecoder::embed(const EmbedRequest& request) {
  Embeddings out;
  for (const auto& ids : request.prompts) {
    const auto n = static_cast<int32_t>(ids.size());
    const int32_t seq = *runner_->open_sequence();
    std::vector<BatchToken> batch;
    for (int32_t i = 0; i < n; ++i) batch.push_back({ids[static_cast<size_t>(i)], i, seq, true});
    const auto hidden = *runner_->step_hidden(batch);
    const auto width = hidden.size() / ids.size();
    std::vector<float> row;
    if (request.pooling == Pooling::kMean) {
      for (size_t f = 0; f < width; ++f) {
        double sum = 0;
        for (size_t i = 0; i < ids.size(); ++i) sum += static_cast<double>(hidden[i * width + f]);
        row.push_back(static_cast<float>(sum / n));
      }
    } else if (request.pooling == Pooling::kNone) {
      row.assign(hidden.begin(), hidden.end());
    } else {
      const auto one = request.pooling == Pooling::kCls ? hidden.first(width) : hidden.last(width);
      row.assign(one.begin(), one.end());
    }
    for (size_t at = 0; request.normalize && at < row.size(); at += width) {
      double sum = 0;
      for (size_t f = 0; f < width; ++f) sum += static_cast<double>(row[at + f]) * static_cast<double>(row[at + f]);
      for (size_t f = 0; f < width; ++f)
        row[at + f] = static_cast<float>(static_cast<double>(row[at + f]) / std::sqrt(sum));
    }
    out.rows.push_back(std::move(row));
    runner_->close_sequence(seq);
  }
  return out;
}

PlainDecoder::Scored PlainDecoder::choice(const Request& r, int32_t index, Response& response) {
  Choice out;
  double score = 0;
  int n_scored = 0;
  const Tokenizer& tokenizer = *runner_->model().tokenizer();
  const auto n_vocab = static_cast<size_t>(runner_->n_vocab());
  const int32_t seq = *runner_->open_sequence();
  std::vector<int32_t> ids = r.prompt;
  SamplingParams sampling = r.sampling;
  sampling.seed += static_cast<uint64_t>(index);
  Sampler sampler(sampling);
  std::vector<BatchToken> batch;
  for (size_t i = 0; i < ids.size(); ++i) batch.push_back({ids[i], static_cast<int32_t>(i), seq, true});
  auto rows = *runner_->step(batch);
  if (r.prompt_logprobs && index == 0) {
    for (size_t i = 0; i + 1 < ids.size(); ++i)
      response.prompt_logprobs.push_back(logprobs_of(rows.subspan(i * n_vocab, n_vocab), ids[i + 1], r.top_logprobs));
  }
  auto row = rows.last(n_vocab);
  const auto ends = [&](int32_t id) {
    if (std::count(r.stop_ids.begin(), r.stop_ids.end(), id) > 0) return true;
    return !r.ignore_eos && tokenizer.valid(id) && tokenizer.is_eog(id);
  };
  // The text without stops; where each token ends in it.
  StreamDecoder decoder(tokenizer, DecodeOptions{r.show_control, false});
  std::string text;
  size_t free_text = 0;         // stops count from here on
  const auto find_stop = [&] {  // the one complete first, of those the one that began first
    size_t end = std::string::npos, begin = 0;
    for (const auto& s : r.stop) {
      const size_t at = text.find(s, free_text);
      if (at == std::string::npos) continue;
      if (at + s.size() < end || (at + s.size() == end && at < begin)) {
        end = at + s.size(), begin = at;
        out.stop = s;
      }
    }
    if (end == std::string::npos) return false;
    text.resize(begin);
    return true;
  };
  out.finish = FinishReason::kLength;
  while (r.max_tokens < 0 || static_cast<int32_t>(out.ids.size()) < r.max_tokens) {
    std::vector<float> logits(row.begin(), row.end());
    const bool go_on = static_cast<int32_t>(out.ids.size()) < r.min_tokens;
    for (size_t i = 0; go_on && i < n_vocab; ++i)
      if (ends(static_cast<int32_t>(i))) logits[i] = -INFINITY;
    if (r.mask) {
      std::vector<uint32_t> allowed((n_vocab + 31) / 32, UINT32_MAX);
      if (!r.mask(index, out.ids, allowed).ok()) ADD_FAILURE();
      for (size_t i = 0; i < n_vocab; ++i)
        if ((allowed[i / 32] >> (i % 32) & 1) == 0) logits[i] = -INFINITY;
    }
    const int32_t id = *sampler.sample(logits, ids, ids.size());
    score += static_cast<double>(logprobs_of(row, id, 0).logprob), ++n_scored;
    if (ends(id)) {
      out.finish = FinishReason::kStop;
      break;
    }
    out.ids.push_back(id);
    if (r.logprobs || r.top_logprobs > 0) {
      out.logprobs.push_back(r.logprobs_of == LogprobsOf::kModel ? logprobs_of(row, id, r.top_logprobs)
                                                                 : sampled_logprobs(sampler, id, r.top_logprobs));
    }
    if (tokenizer.valid(id)) {
      const std::string piece = *decoder.push(id);
      text += piece;
      if (go_on) free_text = text.size();
    }
    ids.push_back(id);
    if (find_stop()) {
      out.finish = FinishReason::kStop;
      break;
    }
    if (r.max_tokens >= 0 && static_cast<int32_t>(out.ids.size()) >= r.max_tokens) break;
    if (static_cast<int32_t>(ids.size()) > runner_->n_ctx()) {
      out.finish = FinishReason::kContext;
      break;
    }
    const BatchToken next{id, static_cast<int32_t>(ids.size()) - 1, seq, true};
    row = *runner_->step({&next, 1});
  }
  if (out.stop.empty()) {
    text += decoder.finish();
    if (static_cast<int32_t>(out.ids.size()) < r.min_tokens) free_text = text.size();
    if (find_stop()) out.finish = FinishReason::kStop;
  }
  out.text = text;
  runner_->close_sequence(seq);
  return {std::move(out), n_scored > 0 ? score / n_scored : -INFINITY};
}

std::string difference(const std::vector<TokenLogprobs>& got, const std::vector<TokenLogprobs>& want) {
  if (got.size() != want.size()) return fmt::format("{} logprobs, expected {}", got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i].logprob, &want[i].logprob, sizeof(float)) != 0)
      return fmt::format("logprob {} is {}, expected {}", i, got[i].logprob, want[i].logprob);
    if (got[i].top != want[i].top) return fmt::format("the top logprobs of token {} differ", i);
  }
  return "";
}

std::string difference(const Choice& got, const Choice& want, bool may_be_cut) {
  const size_t n = may_be_cut ? std::min(got.ids.size(), want.ids.size()) : want.ids.size();
  if (got.ids.size() > want.ids.size() || (!may_be_cut && got.ids.size() != n))
    return fmt::format("{} ids, expected {}", got.ids.size(), want.ids.size());
  for (size_t i = 0; i < n; ++i) {
    if (got.ids[i] != want.ids[i]) return fmt::format("id {} is {}, expected {}", i, got.ids[i], want.ids[i]);
  }
  if (may_be_cut) return "";
  if (got.text != want.text) return fmt::format("the text is '{}', expected '{}'", got.text, want.text);
  if (got.finish != want.finish)
    return fmt::format("it ends by {}, expected {}", finish_reason_name(got.finish), finish_reason_name(want.finish));
  if (got.stop != want.stop) return fmt::format("stopped by '{}', expected '{}'", got.stop, want.stop);
  return difference(got.logprobs, want.logprobs);
}

}  // namespace minfer::testing
