// minfer batch MODEL IN.jsonl OUT.jsonl: many requests, one a line, computed together.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"
#include "base/memory_info.h"
#include "base/numerics_version.h"
#include "batch_job.h"
#include "batch_output.h"
#include "common.h"
#include "model_hash.h"
#include "open_engine.h"
#include "options.h"
#include "prompt.h"
#include "server/openai/sampling_fields.h"
#include "serving_flags.h"
#include "trace/tracer.h"

namespace minfer::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr Range kPredict = {-1, 1 << 30};
// How far reading runs ahead of the oldest line that is not written: lines, and what they may need of memory.
constexpr size_t kWindowLines = 512;
constexpr int64_t kWindowBytes = int64_t{512} << 20;

struct BatchFlags {
  ServingFlags serving;
  InsightFlags insight;
  SamplingFlags sampling;
  std::vector<std::string> files;
  std::string model, template_file;
  int predict = 0;
  bool has_predict = false, as_finished = false, overwrite = false, no_stamp = false, cached_tokens = false,
       stats = false;
};

struct Totals {
  int64_t answered = 0, refused = 0, earlier = 0, prompt = 0, cached = 0, generated = 0;
};

class Batch {
 public:
  Batch(const BatchContext& context, BatchInput& input, BatchOutput& output, int64_t n_requests, bool in_order)
      : context_(context),
        input_(input),
        output_(output),
        n_requests_(n_requests),
        in_order_(in_order),
        bar_("answering", "lines") {}

  // Until every line has its result, or Ctrl-C.
  Status run() {
    int reads = 0;
    while (!interrupted()) {
      const bool read = !at_end_ && has_room();
      if (read) MINFER_TRY(read_line());
      constexpr int kReadsPerLook = 32;  // looking costs something for each line in the window
      const bool look = !read || ++reads % kReadsPerLook == 0;
      const bool written = look && MINFER_TRY(write_done());
      if (jobs_.empty() && at_end_) break;
      if (read || written) continue;
      constexpr int kWaitMs = 10;  // an answer is complete a moment after its last event, and Ctrl-C rings no bell
      context_.bell->wait(kWaitMs);
      MINFER_TRY(output_.sync_if_due());
    }
    jobs_.clear();  // cancels what is left
    return output_.sync();
  }

  const Totals& totals() const { return totals_; }

 private:
  bool has_room() const { return jobs_.empty() || (jobs_.size() < kWindowLines && cost_ < kWindowBytes); }

  Status read_line() {
    const auto line = MINFER_TRY(input_.next());
    if (!line) {
      at_end_ = true;
      return {};
    }
    const uint64_t before = output_.done(line->number);
    if (before != 0) {
      if (before != line->hash) {
        return make_error(ErrorCode::kUnsupported,
                          "'{}' holds the result of another line {}: the input has changed. The earlier input goes on, "
                          "another file or --overwrite begins anew",
                          output_.path(), line->number);
      }
      ++totals_.earlier;
      return {};
    }
    if (line->blank) return {};
    auto job = std::make_unique<BatchJob>(context_, *line);
    job->start();
    cost_ += job->cost();
    jobs_.push_back(std::move(job));
    return {};
  }

  Result<bool> write_done() {
    bool any = false, waits = false;  // waits: a line before it has no result yet
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      BatchJob& job = **it;
      if (!job.done() || (waits && in_order_)) {
        waits = true;
        ++it;
        continue;
      }
      MINFER_TRY(output_.append(job.result()));
      ++(job.refused() ? totals_.refused : totals_.answered);
      totals_.prompt += job.prompt_tokens();
      totals_.cached += job.cached_tokens();
      totals_.generated += job.generated_tokens();
      cost_ -= job.cost();
      it = jobs_.erase(it);
      any = true;
    }
    if (any) bar_.update(totals_.answered + totals_.refused, n_requests_ - output_.n_done());
    return any;
  }

  const BatchContext& context_;
  BatchInput& input_;
  BatchOutput& output_;
  const int64_t n_requests_;
  const bool in_order_;
  bool at_end_ = false;
  std::deque<std::unique_ptr<BatchJob>> jobs_;  // in order of the lines
  int64_t cost_ = 0;
  Totals totals_;
  Progress bar_;
};

// The model that the first line names, for `minfer batch IN OUT`.
Result<std::string> model_of_first_line(const std::string& path) {
  BatchInput input = MINFER_TRY(BatchInput::open(path));
  while (const auto line = MINFER_TRY(input.next())) {
    if (line->blank) continue;
    LineRequest request;
    const auto parsed = parse_line(line->text, request);
    const chat::Value* model = parsed.ok() ? request.body.find("model") : nullptr;
    if (model != nullptr && model->is_string() && !model->as_string().empty()) return model->as_string();
    break;
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "no model: '{}' names none in the \"model\" of its first line, expected MODEL IN OUT", path);
}

// What decides the results, beside the input: a run that differs in any of it is another batch.
Json make_note(const BatchContext& c, const BatchFlags& f, const std::string& template_source) {
  Json j;
  j["format"] = 1;
  j["program"] = MINFER_VERSION;
  j["model"] = c.prompt.model().name();
  j["model_sha256"] = c.model.sha256;
  j["numerics"] = kNumericsVersion;
  j["cache_type_k"] = c.model.cache_type_k;
  j["cache_type_v"] = c.model.cache_type_v;
  j["ctx"] = c.engine.n_ctx();
  j["template_sha256"] = template_source.empty() ? Json() : Json(sha256_hex(template_source));
  j["order"] = f.as_finished ? "as finished" : "input";
  j["stamp"] = c.stamp;
  j["cached_tokens"] = c.cached_tokens;
  j["only_model"] = c.only_model;
  j["max_tokens"] = c.defaults.max_tokens ? Json(*c.defaults.max_tokens) : Json();
  j["sampling"] = openai::stamped_sampling(c.defaults.sampling);
  j["dry_breakers_sha256"] = sha256_hex(Json(c.dry_breakers->usual()).dump());
  return j;
}

void print_summary(const Totals& t, double seconds, bool stats) {
  std::fprintf(stderr, "minfer: %lld lines answered, %lld refused", static_cast<long long>(t.answered),
               static_cast<long long>(t.refused));
  if (t.earlier > 0) std::fprintf(stderr, ", %lld were there before", static_cast<long long>(t.earlier));
  std::fprintf(stderr, "\n");
  if (!stats) return;
  std::fprintf(stderr,
               "prompt_tokens: %lld (%lld from the cache)\ngenerated_tokens: %lld\nseconds: %.2f\n"
               "generated_tokens_per_second: %.1f\npeak_rss_bytes: %lld\n",
               static_cast<long long>(t.prompt), static_cast<long long>(t.cached), static_cast<long long>(t.generated),
               seconds, seconds > 0 ? static_cast<double>(t.generated) / seconds : 0.0,
               static_cast<long long>(peak_rss_bytes()));
}

Result<int> run(const BatchFlags& f) {
  EngineOptions options = MINFER_TRY(f.serving.options());
  // Nobody waits for a single token here: prompts are read as fast as can be.
  if (std::isnan(f.serving.max_stall_ms)) options.max_stall_ms = 1e6;
  MINFER_TRY(f.insight.check());
  SamplingParams sampling = MINFER_TRY(f.sampling.resolve());
  sampling.seed = f.sampling.seed.value_or(0);  // never a fresh one: the same input gives the same file
  if (f.predict == 0 && f.has_predict) {
    return make_error(ErrorCode::kInvalidArgument, "--predict: found 0, expected 1 or more, or -1");
  }
  const std::string in = f.files[f.files.size() - 2], out = f.files.back();
  std::string name = f.model, only_model;
  if (f.files.size() == 3) {
    if (!name.empty()) {
      return make_error(ErrorCode::kInvalidArgument, "--model '{}': the model is given already, as '{}'", name,
                        f.files[0]);
    }
    name = f.files[0];
  } else if (name.empty()) {
    name = only_model = MINFER_TRY(model_of_first_line(in));
  }
  std::string source;
  if (!f.template_file.empty()) source = MINFER_TRY(template_source(f.template_file));

  BatchInput input = MINFER_TRY(BatchInput::open(in));
  auto model = MINFER_TRY(open_model(name));
  SamplingParams with_dry = sampling;  // a line may turn DRY on: its breakers are made once
  with_dry.dry_multiplier = 1;
  MINFER_TRY(f.sampling.fit(with_dry, model->tokenizer(), model->hparams().n_vocab));
  const LineCount count = MINFER_TRY(count_lines(in));
  BatchOutput output = MINFER_TRY(BatchOutput::open(out));
  if (input.is_same_file(output.fd())) {
    return make_error(ErrorCode::kInvalidArgument, "'{}' is both the input and the output", in);
  }
  if (f.overwrite) MINFER_TRY(output.discard());
  // Where a context ends depends on the memory that is free; a run that goes on has that of the run before.
  const int32_t earlier_ctx = MINFER_TRY(output.earlier_ctx());
  if (options.ctx == 0) options.ctx = earlier_ctx;
  options.max_requests = 1 << 24;  // the window bounds them
  StampedModel stamped = {MINFER_TRY(model_sha256(*model->file())), options.cache_type_k, options.cache_type_v};

  const auto prompt = MINFER_TRY(of_file(ChatPrompt::create(*model, source)));
  OpenedEngine opened = MINFER_TRY(open_engine(std::move(model), std::move(options), f.insight));
  stamped.n_ctx = opened.engine->n_ctx();
  BatchContext context = {*opened.engine, prompt};
  context.defaults.sampling = sampling;
  context.dry_breakers =
      std::make_shared<DryBreakers>(opened.engine->model().tokenizer(), std::move(with_dry.dry_breakers));
  if (f.has_predict) context.defaults.max_tokens = f.predict;
  context.model = stamped;
  context.only_model = only_model;
  context.stamp = !f.no_stamp;
  context.cached_tokens = f.cached_tokens;
  context.bell = std::make_shared<Bell>();
  MINFER_TRY(output.begin(make_note(context, f, source), count.lines));

  Batch batch(context, input, output, count.requests, !f.as_finished);
  const int64_t start = now_ns();
  MINFER_TRY(batch.run());
  print_summary(batch.totals(), static_cast<double>(now_ns() - start) * 1e-9, f.stats);
  MINFER_TRY(opened.finish());
  if (!interrupted()) return kOk;
  std::fprintf(stderr, "minfer: interrupted; the same command goes on with the lines that are missing\n");
  return kInterrupted;
}

}  // namespace

void add_batch(CLI::App& app, Exit exit) {
  auto f = std::make_shared<BatchFlags>();
  CLI::App* sub = app.add_subcommand("batch", "answer many requests from a file, one a line");
  sub->add_option("files", f->files,
                  "MODEL IN OUT: the model, the requests (JSON lines, as OpenAI's batches) and the file that receives "
                  "a line for each; without MODEL it is --model, or what the first line names")
      ->expected(2, 3)
      ->required()
      ->type_name("[MODEL] IN OUT");
  add_text(*sub, "--model,-m", f->model, "a GGUF file or the name of a cached model");
  add_text(*sub, "--template", f->template_file,
           "a chat template instead of the model's: a Jinja file, or chatml, llama3, mistral, gemma, phi3, ...");
  auto* predict = add_integer(*sub, "-n,--predict", f->predict, kPredict,
                              "tokens per answer at most where a line says nothing; -1 = until the answer ends "
                              "(default: chats -1, completions 16)");
  sub->add_flag("--as-finished", f->as_finished, "write results as they finish, not in order of the lines");
  sub->add_flag("--overwrite", f->overwrite, "begin anew where the output is there already");
  sub->add_flag("--no-stamp", f->no_stamp, "leave out what minfer replay needs");
  sub->add_flag("--cached-tokens", f->cached_tokens,
                "report cached tokens, which differ from run to run: the output is no longer the same every time");
  sub->add_flag("--stats", f->stats, "print totals and speed to stderr")->group("Insight");
  f->insight.add_to(*sub);
  f->serving.add_to(*sub);
  f->sampling.add_to(*sub);
  sub->footer(
      "A run that ended early, by Ctrl-C, a crash or kill -9, goes on when the same command is given again. OUT.batch\n"
      "says what made OUT; a run with another model or other settings is refused. IN and OUT are regular files: both "
      "are\n"
      "read again.\n"
      "Sampling and --predict hold where a line is silent; a line without a seed gets its own from --seed (default 0)\n"
      "and its number, so that the same input gives the same bytes.\n\n"
      "Examples:\n  minfer batch smollm2 requests.jsonl answers.jsonl\n"
      "  minfer batch smollm2 in.jsonl out.jsonl --temp 0 -n 256 --parallel 32 --as-finished\n"
      "  minfer replay answers.jsonl");
  on_run(
      *sub, exit,
      [f, predict] {
        f->has_predict = predict->count() > 0;
        return run(*f);
      },
      /*polls_interrupt=*/true);
}

}  // namespace minfer::cli
