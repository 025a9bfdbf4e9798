// minfer bench MODEL | --shape NAME --type T: prefill and decode speed with the fraction of the machine's limits.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "base/cpu_info.h"
#include "base/error.h"
#include "base/memory_info.h"
#include "common.h"
#include "engine/runner.h"
#include "model/geometry.h"
#include "options.h"
#include "peak.h"
#include "stats.h"

namespace minfer::cli {
namespace {

struct BenchFlags {
  EngineFlags engine;
  std::string model, shape, type = "q8_0";
  int prompt = 512, predict = 128, depth = 0, repeats = 5, sequences = 1;
  bool peak = false;
};

IsaLevel isa_level(const Backend& backend) { return isa_from_name(backend.isa()).value_or(IsaLevel::kScalar); }

constexpr Range kTokens = {0, 1 << 24}, kRepeats = {1, 10000}, kSequences = {1, 1024};

class Bench {
 public:
  // Opens the sequences and fills each to depth -d.
  static Result<Bench> create(const BenchFlags& flags, Runner& runner) {
    Bench b(flags, runner);
    for (int i = 0; i < flags.sequences; ++i) b.seqs_.push_back(MINFER_TRY(runner.open_sequence()));
    for (const int32_t seq : b.seqs_) MINFER_TRY(b.feed(seq, b.tokens(flags.depth)));
    return b;
  }

  // One timed prefill of -p tokens of one sequence at depth -d, in tokens per second.
  Result<double> prefill() {
    const auto ids = tokens(f_.prompt);
    runner_.truncate(seqs_[0], f_.depth);
    const int64_t t0 = now_ns();
    MINFER_TRY(feed(seqs_[0], ids));
    return rate(f_.prompt, t0);
  }

  // Arithmetic of such a prefill, counted on a run of its own.
  Result<double> prefill_flops() {
    runner_.truncate(seqs_[0], f_.depth);
    double flops = 0;
    MINFER_TRY(feed(seqs_[0], tokens(f_.prompt), &flops));
    return flops;
  }

  // -n steps of one token of every sequence from depth -d, in tokens of all sequences per second.
  Result<double> decode() {
    const auto ids = tokens(f_.predict);
    for (const int32_t seq : seqs_) runner_.truncate(seq, f_.depth);
    std::vector<BatchToken> batch(seqs_.size());
    const int64_t t0 = now_ns();
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t s = 0; s < seqs_.size(); ++s) {
        batch[s] = {ids[(i + s) % ids.size()], f_.depth + static_cast<int32_t>(i), seqs_[s], true};
      }
      MINFER_TRY(runner_.step(batch));
    }
    return rate(f_.predict * f_.sequences, t0);
  }

 private:
  Bench(const BenchFlags& flags, Runner& runner) : f_(flags), runner_(runner), random_(1) {}

  static double rate(int tokens, int64_t since_ns) {
    return static_cast<double>(tokens) / (static_cast<double>(now_ns() - since_ns) * 1e-9);
  }

  // In chunks, the logits of the last token wanted; adds up the arithmetic where it is asked for.
  Status feed(int32_t seq, std::span<const int32_t> ids, double* flops = nullptr) {
    std::vector<BatchToken> batch;
    for (size_t i = 0; i < ids.size(); ++i) {
      batch.push_back({ids[i], runner_.length(seq) + static_cast<int32_t>(batch.size()), seq, i + 1 == ids.size()});
      if (batch.size() < static_cast<size_t>(runner_.chunk()) && i + 1 < ids.size()) continue;
      MINFER_TRY(runner_.step(batch));
      if (flops != nullptr) {
        const Plan* plan = MINFER_TRY(runner_.plan_for(static_cast<int32_t>(batch.size()), 1,
                                                       batch.back().want_logits ? 1 : 0, batch.back().position));
        *flops += plan->cost().flops;
      }
      batch.clear();
    }
    return {};
  }

  std::vector<int32_t> tokens(int n) {
    std::vector<int32_t> ids(static_cast<size_t>(n));
    const auto vocab = static_cast<uint32_t>(runner_.n_vocab());
    for (auto& id : ids) id = static_cast<int32_t>(random_() % vocab);
    return ids;
  }

  const BenchFlags& f_;
  Runner& runner_;
  std::mt19937 random_;
  std::vector<int32_t> seqs_;
};

// Without a place to keep it the machine is measured again the next time.
void keep_peak(int threads, const std::string& isa, const cpu::Peak& peak) {
  const auto stored = store_peak(threads, isa, peak);
  if (!stored.ok()) std::fprintf(stderr, "minfer: warning: %s\n", for_terminal(stored.error().message).c_str());
}

// The type that holds most values of the matrices.
std::string matrix_type(const Model& model) {
  std::map<DType, int64_t> values;
  for (const Weight& w : model.weights().weights()) {
    if (w.role == WeightRole::kMatMul || w.role == WeightRole::kEmbed) values[w.plain.dtype] += w.plain.shape.count();
  }
  const auto most =
      std::max_element(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == values.end() ? "" : std::string(dtype_info(most->first).name);
}

Status check_context(int need, int n_ctx_train) {
  if (need <= n_ctx_train) return {};
  return make_error(ErrorCode::kInvalidArgument, "-d, -p and -n need {} positions, the model allows {}", need,
                    n_ctx_train);
}

// What can be known before a model of random weights is made, which may take a minute.
Status check_shape(const BenchFlags& f, int need, DType type, const Backend& backend) {
  const bool packs = std::string_view(backend.name()) != "ref";
  const int64_t bytes = MINFER_TRY(Model::random_bytes(f.shape, type, packs)), free = memory_available_bytes();
  MINFER_TRY(check_context(need, find_geometry(f.shape)->hp.n_ctx_train));
  if (bytes <= free) return {};
  return make_error(ErrorCode::kResourceExhausted, "--shape {} --type {} needs {:.1f} GB, {:.1f} GB are free", f.shape,
                    dtype_info(type).name, static_cast<double>(bytes) * 1e-9, static_cast<double>(free) * 1e-9);
}

int print_peak(const BenchFlags& f, const cpu::Peak& p, const std::string& isa, int threads) {
  if (f.engine.json) {
    nlohmann::ordered_json j = {{"isa", isa},
                                {"threads", threads},
                                {"read_gb_per_s", p.read_gb_per_s},
                                {"f32_gflop_per_s", p.f32_gflop_per_s},
                                {"int8_gop_per_s", p.int8_gop_per_s}};
    std::printf("%s\n", j.dump().c_str());
  } else {
    std::printf("isa %s, %d threads: read %.1f GB/s, f32 %.0f GFLOP/s, int8 %.0f GOP/s\n", isa.c_str(), threads,
                p.read_gb_per_s, p.f32_gflop_per_s, p.int8_gop_per_s);
  }
  return kOk;
}

Status check(const BenchFlags& f) {
  if (!f.peak && f.model.empty() == f.shape.empty())
    return make_error(ErrorCode::kInvalidArgument, "give either MODEL or --shape NAME (or --peak alone)");
  if (f.prompt == 0 && f.predict == 0)
    return make_error(ErrorCode::kInvalidArgument, "-p 0 and -n 0 leave nothing to measure");
  return {};
}

Result<int> bench(BenchFlags f) {
  MINFER_TRY(check(f));
  MINFER_TRY(f.engine.check());
  const RunnerOptions options = MINFER_TRY(f.engine.options());
  const auto backend = MINFER_TRY(make_backend(options.backend));
  const int need = f.depth + std::max(f.prompt, f.predict);
  if (f.engine.ctx == 0) f.engine.ctx = std::max(need, 1);
  if (f.engine.ctx < need)
    return make_error(ErrorCode::kInvalidArgument, "--ctx {}: the measurement needs {} positions", f.engine.ctx, need);
  if (f.peak) {
    const int threads = options.n_threads == 0 ? usable_cores() : options.n_threads;
    auto pool = MINFER_TRY(ThreadPool::create(threads));
    const auto peak = MINFER_TRY(cpu::measure_peak(*pool, isa_level(*backend)));
    keep_peak(threads, backend->isa(), peak);
    if (f.model.empty() && f.shape.empty()) return print_peak(f, peak, backend->isa(), threads);
  }
  std::unique_ptr<Model> model;
  if (!f.shape.empty()) {
    const auto type = dtype_from_name(f.type);
    if (!type)
      return make_error(ErrorCode::kInvalidArgument,
                        "--type: found '{}', expected f16, q4_0, q8_0 or another weight type", f.type);
    MINFER_TRY(check_shape(f, f.engine.ctx, *type, *backend));
    model = MINFER_TRY(Model::random(f.shape, *type, 1));
  } else {
    model = MINFER_TRY(open_model(f.model));
  }
  MINFER_TRY(check_context(f.engine.ctx, model->hparams().n_ctx_train));
  const int64_t t_load = now_ns();
  Loaded loaded = MINFER_TRY(load(std::move(model), f.engine, f.sequences));
  const double load_ms = static_cast<double>(now_ns() - t_load) * 1e-6;
  Runner& runner = *loaded.runner;
  const int threads = runner.pool().size();
  const std::string isa = runner.backend().isa();
  // Measured in every run and kept where it is better: whatever else the machine did then only ever made it look
  // slower.
  cpu::Peak peak = MINFER_TRY(cpu::measure_peak(runner.pool(), isa_level(runner.backend())));
  if (const auto kept = cached_peak(threads, isa)) {
    peak.read_gb_per_s = std::max(peak.read_gb_per_s, kept->read_gb_per_s);
    peak.f32_gflop_per_s = std::max(peak.f32_gflop_per_s, kept->f32_gflop_per_s);
    peak.int8_gop_per_s = std::max(peak.int8_gop_per_s, kept->int8_gop_per_s);
  }
  keep_peak(threads, isa, peak);

  Bench b = MINFER_TRY(Bench::create(f, runner));
  std::vector<double> prefill, decode, bandwidth;
  Progress bar("measuring", "runs");
  for (int r = -1; r < f.repeats; ++r) {  // the first round warms caches and plans and does not count
    if (f.prompt > 0) {
      const double v = MINFER_TRY(b.prefill());
      if (r >= 0) prefill.push_back(v);
    }
    if (f.predict > 0) {
      const double before = MINFER_TRY(cpu::measure_read_gb_per_s(runner.pool(), isa_level(runner.backend())));
      const double v = MINFER_TRY(b.decode());
      const double after = MINFER_TRY(cpu::measure_read_gb_per_s(runner.pool(), isa_level(runner.backend())));
      if (r >= 0) {
        decode.push_back(v);
        bandwidth.push_back(0.5 * (before + after));
      }
    }
    bar.update(r + 2, f.repeats + 1);
  }

  const auto& kv = runner.kv_shape();
  const double mean_depth = f.depth + 0.5 * f.predict;
  // The weights are read once per step, whatever the number of sequences.
  const double bytes_per_token =
      static_cast<double>(runner.weights().bytes_read_per_token) / f.sequences +
      mean_depth * static_cast<double>(kv_bytes_per_token(loaded.model->hparams(), kv.type_k, kv.type_v));
  const double prefill_flops = f.prompt > 0 ? MINFER_TRY(b.prefill_flops()) / f.prompt : 0;
  const int ops = static_cast<int>(MINFER_TRY(runner.plan_for(1, 1, 1, 0))->steps().size());
  const Summary p = summarize(prefill), d = summarize(decode), bw = summarize(bandwidth);
  const double decode_gb = d.median * bytes_per_token * 1e-9, prefill_gops = p.median * prefill_flops * 1e-9;
  const bool quantized =
      dtype_info(loaded.model->weights().weights()[static_cast<size_t>(loaded.model->weight_ids().output)].plain.dtype)
          .quantized;
  const double arithmetic_peak = quantized ? peak.int8_gop_per_s : peak.f32_gflop_per_s;
  std::vector<double> fractions;
  for (size_t i = 0; i < decode.size(); ++i) fractions.push_back(decode[i] * bytes_per_token * 1e-9 / bandwidth[i]);
  const Summary fraction = summarize(fractions);

  if (f.engine.json) {
    const auto spread = [](const Summary& s) {
      return nlohmann::ordered_json{{"median", s.median}, {"min", s.min}, {"max", s.max}, {"n", s.n}};
    };
    nlohmann::ordered_json j;
    j["model"] = loaded.model->name();
    j["type"] = matrix_type(*loaded.model);
    j["parameters"] = loaded.model->parameters();
    j["device"] = runner.backend().name();
    j["isa"] = isa;
    j["threads"] = threads;
    j["n_prompt"] = f.prompt, j["n_predict"] = f.predict, j["depth"] = f.depth, j["repeats"] = f.repeats;
    j["sequences"] = f.sequences;
    j["load_ms"] = load_ms;
    j["prefill_tokens_per_second"] = p.median;
    j["decode_tokens_per_second"] = d.median;
    j["prefill"] = spread(p);
    j["decode"] = spread(d);
    j["ops_per_decode_token"] = ops;
    j["bytes_per_token"] = bytes_per_token;
    j["decode_gb_per_s"] = decode_gb;
    j["prefill_gop_per_s"] = prefill_gops;
    j["read_gb_per_s_beside"] = spread(bw);
    j["fraction_of_bandwidth"] = fraction.median;
    j["fraction_of_arithmetic_peak"] = arithmetic_peak > 0 ? prefill_gops / arithmetic_peak : 0;
    j["peak"] = {{"read_gb_per_s", peak.read_gb_per_s},
                 {"f32_gflop_per_s", peak.f32_gflop_per_s},
                 {"int8_gop_per_s", peak.int8_gop_per_s}};
    j["peak_rss_bytes"] = peak_rss_bytes();
    std::printf("%s\n", j.dump().c_str());
  } else {
    std::printf("%s %s, %s/%s, %d threads, %d ops per decode token, loaded in %.0f ms\n",
                for_terminal(loaded.model->name()).c_str(), matrix_type(*loaded.model).c_str(), runner.backend().name(),
                isa.c_str(), threads, ops, load_ms);
    if (f.prompt > 0) {
      std::printf(
          "prefill %5d at %5d: %9.2f tokens/s (min %.2f, max %.2f, n %zu)  %.0f GOP/s, %.1f %% of the %s peak\n",
          f.prompt, f.depth, p.median, p.min, p.max, p.n, prefill_gops, 100 * prefill_gops / arithmetic_peak,
          quantized ? "int8" : "f32");
    }
    if (f.predict > 0) {
      std::printf(
          "decode  %5d at %5d: %9.2f tokens/s%s (min %.2f, max %.2f, n %zu)  %.2f GB/s, %.1f %% of the %.1f GB/s read "
          "beside it\n",
          f.predict, f.depth, d.median, f.sequences > 1 ? fmt::format(" of {} sequences", f.sequences).c_str() : "",
          d.min, d.max, d.n, decode_gb, 100 * fraction.median, bw.median);
    }
  }
  MINFER_TRY(loaded.finish());
  return kOk;
}

}  // namespace

void add_bench(CLI::App& app, Exit exit) {
  auto f = std::make_shared<BenchFlags>();
  CLI::App* sub = app.add_subcommand("bench", "prefill and decode speed, as fractions of the machine's limits");
  add_model(*sub, f->model, "", /*required=*/false);
  std::string shapes;
  for (const auto& n : Model::geometries()) shapes += (shapes.empty() ? "" : ", ") + n;
  add_text(*sub, "--shape", f->shape, "a random-weight model of this geometry: " + shapes);
  add_text(*sub, "--type", f->type, "weight type of --shape");
  add_integer(*sub, "-p,--prompt", f->prompt, kTokens, "prompt tokens to prefill; 0 = none", true);
  add_integer(*sub, "-n,--predict", f->predict, kTokens, "tokens to decode; 0 = none", true);
  add_integer(*sub, "-d,--depth", f->depth, kTokens, "positions already in the cache", true);
  add_integer(*sub, "-s,--sequences", f->sequences, kSequences, "sequences to decode together, one token each a step",
              true);
  add_integer(*sub, "-r,--repeats", f->repeats, kRepeats, "measured rounds", true);
  sub->add_flag("--peak", f->peak, "measure the machine's limits anew (alone: only that)");
  f->engine.add_to(*sub);
  sub->footer(
      "Examples:\n  minfer bench smollm2\n  minfer bench --shape qwen3-0.6b --type q4_0 -p 512 -n 128 -r 3\n  minfer "
      "bench smollm2 -p 0 -d 128 -s 8\n  minfer "
      "bench --peak --threads 2");
  on_run(*sub, exit, [f] { return bench(*f); });
}

}  // namespace minfer::cli
