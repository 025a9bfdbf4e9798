// minfer perplexity MODEL FILE: how well the model predicts a text, with the standard error.
// The text is cut into windows; in each the first half is context only and the second half is scored, so that every
// scored token has seen at least half a window.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "common.h"
#include "engine/feed.h"
#include "options.h"

namespace minfer::cli {
namespace {

struct PerplexityFlags {
  EngineFlags engine;
  std::string model, file;
  int window = 512, limit = -1;
};

constexpr Range kWindow = {4, 1 << 30};
constexpr size_t kMaxTextBytes = size_t{1} << 30;

// -log p(id) under softmax(logits), in f64.
double negative_log_likelihood(std::span<const float> logits, int32_t id) {
  double largest = -INFINITY;
  for (float x : logits) largest = std::max(largest, static_cast<double>(x));
  double sum = 0;
  for (float x : logits) sum += std::exp(static_cast<double>(x) - largest);
  return largest + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(id)]);
}

Result<int> perplexity(const PerplexityFlags& f) {
  MINFER_TRY(f.engine.check());
  const std::string text = MINFER_TRY(read_input(f.file, kMaxTextBytes));
  EngineFlags engine = f.engine;
  auto model = MINFER_TRY(open_model(f.model));
  const int window = std::min(f.window, model->hparams().n_ctx_train);
  if (engine.ctx == 0) engine.ctx = window;
  if (engine.ctx < window)
    return make_error(ErrorCode::kInvalidArgument, "--ctx {} is smaller than the window of {}", engine.ctx, window);
  Loaded loaded = MINFER_TRY(load(std::move(model), engine));
  if (loaded.model->tokenizer() == nullptr) return make_error(ErrorCode::kUnsupported, "this model has no vocabulary");
  const Tokenizer& tokenizer = *loaded.model->tokenizer();
  const auto ids = MINFER_TRY(tokenizer.encode(text, {.add_special = true, .parse_special = false}));
  auto n_windows = static_cast<int64_t>(ids.size()) / window;
  if (f.limit > 0) n_windows = std::min<int64_t>(n_windows, f.limit);
  if (n_windows < 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "'{}' has {} tokens, expected at least one window of {} (--window makes it smaller)", f.file,
                      ids.size(), window);
  }
  Runner& runner = *loaded.runner;
  const int32_t seq = MINFER_TRY(runner.open_sequence());
  Progress bar("perplexity", "tokens");
  double sum = 0, sum_squares = 0;
  int64_t count = 0;
  const int first = window / 2;
  for (int64_t w = 0; w < n_windows; ++w) {
    std::vector<int32_t> chunk(ids.begin() + w * window, ids.begin() + (w + 1) * window);
    if (tokenizer.add_bos()) chunk[0] = tokenizer.bos();
    runner.truncate(seq, 0);
    MINFER_TRY(feed_all(runner, seq, chunk, [&](size_t i, std::span<const float> logits) -> Status {
      if (i + 1 >= chunk.size() || static_cast<int>(i) < first) return {};
      const double nll = negative_log_likelihood(logits, chunk[i + 1]);
      if (!std::isfinite(nll))
        return make_error(ErrorCode::kInternal, "window {}, token {}: the logits are not finite", w, i);
      sum += nll;
      sum_squares += nll * nll;
      ++count;
      return {};
    }));
    bar.update((w + 1) * window, n_windows * window);
  }
  const double mean = sum / static_cast<double>(count), n = static_cast<double>(count);
  const double variance = count > 1 ? std::max(0.0, (sum_squares / n - mean * mean) * n / (n - 1)) : 0;
  const double ppl = std::exp(mean), error = ppl * std::sqrt(variance / n);
  if (f.engine.json) {
    nlohmann::ordered_json j = {{"perplexity", ppl},      {"standard_error", error}, {"mean_nll", mean},
                                {"tokens_scored", count}, {"windows", n_windows},    {"window", window}};
    std::printf("%s\n", j.dump().c_str());
  } else {
    std::printf("perplexity %.4f +/- %.4f (%lld tokens scored in %lld windows of %d)\n", ppl, error,
                static_cast<long long>(count), static_cast<long long>(n_windows), window);
  }
  MINFER_TRY(loaded.finish());
  return kOk;
}

}  // namespace

void add_perplexity(CLI::App& app, Exit exit) {
  auto f = std::make_shared<PerplexityFlags>();
  CLI::App* sub = app.add_subcommand("perplexity", "perplexity of a text file, with its standard error");
  add_model(*sub, f->model);
  add_text(*sub, "file", f->file, "a text file; '-' reads standard input")->required();
  add_integer(*sub, "--window", f->window, kWindow, "tokens per window; the second half of each is scored", true);
  add_integer(*sub, "--limit", f->limit, kPositive, "windows at most (default: all)");
  f->engine.add_to(*sub);
  sub->footer("Example:\n  minfer perplexity smollm2 book.txt --window 512");
  on_run(*sub, exit, [f] { return perplexity(*f); });
}

}  // namespace minfer::cli
