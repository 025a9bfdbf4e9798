// minfer logits MODEL --tokens 1,2,3: the logits after each token, or their hash.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"
#include "common.h"
#include "engine/feed.h"
#include "npy.h"
#include "options.h"

namespace minfer::cli {
namespace {

struct LogitsFlags {
  EngineFlags engine;
  std::string model, tokens, text, out;
  bool sha256 = false, last = false, single = false, special = false;
};

Result<int> logits(const LogitsFlags& f) {
  if (f.tokens.empty() == f.text.empty())
    return make_error(ErrorCode::kInvalidArgument, "give either --tokens or --text");
  MINFER_TRY(parse_ids(f.tokens, INT32_MAX, "--tokens"));  // what is no list is not worth loading a model
  MINFER_TRY(f.engine.check());
  auto model = MINFER_TRY(open_model(f.model));
  std::vector<int32_t> ids = MINFER_TRY(parse_ids(f.tokens, model->hparams().n_vocab, "--tokens"));
  Loaded loaded = MINFER_TRY(load(std::move(model), f.engine));
  if (!f.text.empty()) {
    if (loaded.model->tokenizer() == nullptr)
      return make_error(ErrorCode::kUnsupported, "this model has no vocabulary");
    ids = MINFER_TRY(loaded.model->tokenizer()->encode(f.text, {.add_special = true, .parse_special = f.special}));
  }
  if (ids.empty()) return make_error(ErrorCode::kInvalidArgument, "no tokens");
  Runner& runner = *loaded.runner;
  const int32_t seq = MINFER_TRY(runner.open_sequence());
  std::vector<float> all;
  const auto keep = [&](std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); };
  if (f.single) {  // one token per step, the path decoding takes
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto row = MINFER_TRY(feed(runner, seq, {&ids[i], 1}));
      if (!f.last || i + 1 == ids.size()) keep(row);
    }
  } else if (f.last) {
    keep(MINFER_TRY(feed(runner, seq, ids)));
  } else {
    MINFER_TRY(feed_all(runner, seq, ids, [&](size_t, std::span<const float> row) {
      keep(row);
      return Status();
    }));
  }
  const auto n_vocab = static_cast<int64_t>(loaded.runner->n_vocab());
  TensorView view;
  view.dtype = DType::kF32;
  view.shape = Shape{static_cast<int64_t>(all.size()) / n_vocab, n_vocab};
  view.row_bytes = n_vocab * 4;
  view.data = reinterpret_cast<std::byte*>(all.data());
  const std::string hash = sha256_hex({view.data, all.size() * sizeof(float)});
  if (f.engine.json) {
    nlohmann::ordered_json j;
    j["sha256"] = hash;
    j["shape"] = {view.shape[0], view.shape[1]};
    j["token_ids"] = ids;
    j["device"] = loaded.runner->backend().name();
    j["isa"] = loaded.runner->backend().isa();
    std::printf("%s\n", j.dump().c_str());
  } else if (f.sha256) {
    std::printf("%s  %s\n", hash.c_str(), view.shape.str().c_str());
  }
  if (!f.out.empty()) {
    MINFER_TRY(write_npy(f.out, view));
  } else if (!f.sha256 && !f.engine.json) {
    if (isatty(STDOUT_FILENO) != 0)
      return make_error(ErrorCode::kInvalidArgument,
                        "the .npy bytes would go to the terminal: use --out FILE, --sha256 or a pipe");
    const std::string bytes = MINFER_TRY(npy_bytes(view));
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);  // main() checks
  }
  MINFER_TRY(loaded.finish());
  return kOk;
}

}  // namespace

void add_logits(CLI::App& app, Exit exit) {
  auto f = std::make_shared<LogitsFlags>();
  CLI::App* sub = app.add_subcommand("logits", "logits after each token, as .npy or as a hash");
  add_model(*sub, f->model);
  add_text(*sub, "--tokens", f->tokens, "token ids, separated by commas or spaces");
  add_text(*sub, "--text", f->text, "text to tokenize instead");
  add_special(*sub, f->special, "parse control tokens in --text");
  sub->add_flag("--sha256", f->sha256, "print the SHA-256 of the logits' bytes, then their shape");
  sub->add_flag("--last", f->last, "only the logits after the last token");
  sub->add_flag("--token-by-token", f->single, "one step per token instead of one prefill");
  add_text(*sub, "--out", f->out, "write the .npy to this file instead of standard output");
  f->engine.add_to(*sub);
  sub->footer(
      "Examples:\n  minfer logits model.gguf --tokens 1,2,3 --sha256\n  minfer logits model.gguf --text \"Hello\" "
      "--last --out logits.npy");
  on_run(*sub, exit, [f] { return logits(*f); });
}

}  // namespace minfer::cli
