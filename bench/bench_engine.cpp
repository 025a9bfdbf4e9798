// Layers: engine
// Measures the engine through its public interface, as its callers see it; a scenario per run, one JSON object.
//   bench_engine decode MODEL [-s 16] [-p 16] [-n 128]                   answers grow together: tokens per second
//   bench_engine shared MODEL [-s 16] [-p 512] [-n 64] [--percent 50]    prompts begin alike: time for all of them
//   bench_engine stall MODEL [-s 8] [-p 32] [--long 4000]                a long prompt arrives: how long streams wait
//   bench_engine draft MODEL DRAFT [-s 1] [-n 128] [--temp 0.8] [-r 3]    guesses of a draft model, of the text, none
//   bench_engine turn MODEL [-p 3000] [-n 64] [-q 32] [--kv-store DIR]   first and second turn: time to first token
// bench/compare_engine.py runs them beside llama.cpp. Prompts are pseudo-random ids, so models without a vocabulary do.
#include <array>
#include <cstdio>
#include <filesystem>

#include "engine_clients.h"

namespace minfer::bench {
namespace {

struct Flags {
  EngineOptions options = default_options();
  std::string model;
  int sequences = 0, prompt = 0, predict = 0, percent = 50, long_prompt = 4000, question = 32;
  double before_ms = 1000, temperature = 0.8;
  int rounds = 3;
  uint64_t seed = 1;
};

class Bench {
 public:
  static Result<Bench> create(Flags flags) {
    Bench b(std::move(flags));
    MINFER_TRY(b.open());
    return b;
  }

  // Tokens that came while all answers grew, over that time.
  Result<Json> decode() {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < f_.sequences; ++i)
      clients.push_back(MINFER_TRY(Client::start(*engine_, greedy(ids(i, f_.prompt), f_.predict))));
    double begin = 0, end = 0;
    for (auto& c : clients) {
      MINFER_TRY(c->join());
      begin = std::max(begin, c->arrivals().front().ms);
      end = end == 0 ? c->arrivals().back().ms : std::min(end, c->arrivals().back().ms);
    }
    int64_t tokens = 0;
    for (const auto& c : clients) {
      for (const Arrival& a : c->arrivals()) tokens += a.ms > begin && a.ms <= end ? a.ids : 0;
    }
    if (tokens == 0) return make_error(ErrorCode::kInvalidArgument, "[bench] the answers did not overlap: raise -n");
    return Json{{"tokens_per_second", static_cast<double>(tokens) / (end - begin) * 1e3},
                {"tokens", tokens},
                {"window_ms", end - begin}};
  }

  Result<Json> shared() {
    const int n_shared = f_.prompt * f_.percent / 100;
    std::vector<std::unique_ptr<Client>> clients;
    const double t0 = now_ms();
    for (int i = 0; i < f_.sequences; ++i) {
      Ids prompt = ids(0, n_shared);
      const Ids own = ids(i + 1, f_.prompt - n_shared);
      prompt.insert(prompt.end(), own.begin(), own.end());
      clients.push_back(MINFER_TRY(Client::start(*engine_, greedy(std::move(prompt), f_.predict))));
    }
    int64_t prompt_tokens = 0, cached = 0, generated = 0;
    double t1 = t0;
    std::vector<double> first;
    for (auto& c : clients) {
      const Response r = MINFER_TRY(c->join());
      prompt_tokens += r.prompt_tokens, cached += r.cached_tokens, generated += r.generated_tokens;
      first.push_back(c->first_ms());
      t1 = std::max(t1, c->arrivals().back().ms);
    }
    return Json{{"total_ms", t1 - t0},
                {"tokens_per_second", static_cast<double>(generated) / (t1 - t0) * 1e3},
                {"prompt_tokens", prompt_tokens},
                {"cached_tokens", cached},
                {"generated_tokens", generated},
                {"first_token_ms", quantiles(first)}};
  }

  Result<Json> stall() {
    std::vector<std::unique_ptr<Client>> streams;
    const int n = std::min(f_.predict, engine_->n_ctx() - f_.prompt);
    for (int i = 0; i < f_.sequences; ++i)
      streams.push_back(MINFER_TRY(Client::start(*engine_, greedy(ids(i, f_.prompt), n))));
    for (auto& c : streams) c->wait_first();
    const double calm = now_ms();
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(f_.before_ms));
    auto newcomer = MINFER_TRY(Client::start(*engine_, greedy(ids(1000, f_.long_prompt), 1)));
    newcomer->wait_first();
    for (auto& c : streams) {
      if (c->ended()) return make_error(ErrorCode::kInvalidArgument, "[bench] a stream ended too soon: raise -n");
      c->cancel();
    }
    MINFER_TRY(newcomer->join());
    const double begin = newcomer->submitted(), end = newcomer->arrivals().front().ms;
    std::vector<double> gaps, calm_gaps;
    int64_t tokens = 0;
    for (auto& c : streams) {
      MINFER_TRY(c->join());
      const auto& a = c->arrivals();
      for (size_t i = 1; i < a.size(); ++i) {
        const double gap = a[i].ms - a[i - 1].ms;
        if (a[i].ms >= begin && a[i - 1].ms < end) gaps.push_back(gap), tokens += a[i].ids;
        if (a[i - 1].ms >= calm && a[i].ms < begin) calm_gaps.push_back(gap);
      }
    }
    return Json{{"max_stall_ms", f_.options.max_stall_ms}, {"gap_ms", quantiles(gaps)},
                {"gap_before_ms", quantiles(calm_gaps)},   {"first_token_ms", newcomer->first_ms()},
                {"long_prompt_tokens", f_.long_prompt},    {"stream_tokens_meanwhile", tokens}};
  }

  // The first turn; the second, which goes on from its answer; with a store, the second again after a restart.
  Result<Json> turn() {
    double first = 0, second = 0, again = 0;
    const Response one = MINFER_TRY(timed(ids(0, f_.prompt), f_.predict, first));
    if (one.cached_tokens != 0)
      return make_error(ErrorCode::kInternal, "[bench] {} tokens of the first turn were cached", one.cached_tokens);
    Ids prompt = ids(0, f_.prompt);
    prompt.insert(prompt.end(), one.choices[0].ids.begin(), one.choices[0].ids.end());
    const Ids question = ids(1, f_.question);
    prompt.insert(prompt.end(), question.begin(), question.end());
    const Response two = MINFER_TRY(timed(prompt, f_.predict, second));
    Json out = {{"first_turn_ms", first},
                {"second_turn_ms", second},
                {"second_over_first", second / first},
                {"prompt_tokens", one.prompt_tokens},
                {"second_prompt_tokens", two.prompt_tokens},
                {"second_cached_tokens", two.cached_tokens}};
    if (f_.options.kv_store.empty()) return out;
    const double t0 = now_ms();
    engine_.reset();
    const double t1 = now_ms();
    MINFER_TRY(open());
    const double t2 = now_ms();
    const Response three = MINFER_TRY(timed(prompt, f_.predict, again));
    out["close_ms"] = t1 - t0, out["open_ms"] = t2 - t1;
    out["after_restart_ms"] = again, out["after_restart_over_first"] = again / first;
    out["after_restart_cached_tokens"] = three.cached_tokens;
    out["same_answer"] = three.choices[0].ids == two.choices[0].ids;
    const EngineStats s = engine_->stats();
    out["kv_store"] = {{"pages", s.kv_store_pages}, {"read", s.kv_store_read}, {"refused", s.kv_store_refused}};
    return out;
  }

  // The same answers with a draft model (and with --speculation the text's own guesses), with the text's own guesses
  // alone and without any, in turns: the median of tokens per second. Prompts are sentences where there is a
  // vocabulary: random ids end in repetitions.
  Result<Json> draft() {
    struct Way {
      const char* name;
      Engine* engine;
      std::vector<double> speeds;
      Response sum;
    };
    EngineOptions o = f_.options;
    o.draft_model.clear();
    o.speculation = 0;
    const auto plain = MINFER_TRY(Engine::open(f_.model, o));
    o.speculation = EngineOptions().speculation;
    const auto lookup = MINFER_TRY(Engine::open(f_.model, o));
    std::vector<Way> ways = {
        {"plain", plain.get(), {}, {}}, {"lookup", lookup.get(), {}, {}}, {"draft", engine_.get(), {}, {}}};
    bool same = true;
    for (int round = 0; round <= f_.rounds; ++round) {  // the first warms up
      std::vector<Ids> first;
      for (Way& w : ways) {
        std::vector<std::unique_ptr<Client>> clients;
        const double t0 = now_ms();
        for (int i = 0; i < f_.sequences; ++i)
          clients.push_back(MINFER_TRY(Client::start(*w.engine, sentence(*w.engine, round * f_.sequences + i))));
        int64_t tokens = 0;
        for (size_t i = 0; i < clients.size(); ++i) {
          const Response r = MINFER_TRY(clients[i]->join());
          tokens += r.generated_tokens;
          w.sum.draft_tokens += r.draft_tokens, w.sum.draft_tokens_accepted += r.draft_tokens_accepted;
          if (&w == ways.data())
            first.push_back(r.choices[0].ids);
          else
            same = same && first[i] == r.choices[0].ids;
        }
        if (round > 0) w.speeds.push_back(static_cast<double>(tokens) / (now_ms() - t0) * 1e3);
      }
    }
    Json out = {{"draft_model", f_.options.draft_model}, {"temperature", f_.temperature}, {"same_answers", same}};
    for (const Way& w : ways) {
      const auto guesses = static_cast<double>(w.sum.draft_tokens);
      out[w.name] = {{"tokens_per_second", quantile(w.speeds, 0.5)},
                     {"guesses", w.sum.draft_tokens},
                     {"came_true", guesses > 0 ? static_cast<double>(w.sum.draft_tokens_accepted) / guesses : 0}};
    }
    const EngineStats s = engine_->stats();
    out["draft"]["by_model"] = s.draft_model_tokens, out["draft"]["by_model_came_true"] = s.draft_model_tokens_accepted;
    out["draft"]["draft_ms"] = s.draft_ms;
    return out;
  }

  Json about() const {
    const EngineOptions& o = f_.options;
    Json stats = stats_json(engine_->stats());
    return {{"sequences", f_.sequences}, {"prompt", f_.prompt},          {"predict", f_.predict},
            {"threads", o.n_threads},    {"speculation", o.speculation}, {"cache_type", o.cache_type_k},
            {"n_vocab", n_vocab()},      {"n_ctx", engine_->n_ctx()},    {"engine", std::move(stats)}};
  }

 private:
  explicit Bench(Flags flags) : f_(std::move(flags)) {}

  // One short request warms it up, as the peer is warmed up.
  Status open() {
    engine_ = MINFER_TRY(Engine::open(f_.model, f_.options));
    MINFER_TRY(engine_->run(greedy(ids(9999, 16), 4)));
    return {};
  }

  Request sentence(const Engine& engine, int i) const {
    constexpr std::array<const char*, 6> kTexts = {"The history of the sea begins with",
                                                   "To bake bread at home, first",
                                                   "She opened the old letter and read:",
                                                   "def fibonacci(n):\n",
                                                   "The three most important facts about the moon are",
                                                   "A short story about a clockmaker. Once"};
    Request r = greedy({}, f_.predict);
    r.sampling.temperature = static_cast<float>(f_.temperature);
    r.sampling.seed = f_.seed + static_cast<uint64_t>(i);
    const auto at = static_cast<size_t>(i) % kTexts.size();
    if (engine.model().tokenizer() != nullptr)
      r.text = kTexts[at];
    else
      r.prompt = ids(i, 16);
    return r;
  }

  int32_t n_vocab() const { return engine_->model().hparams().n_vocab; }
  Ids ids(int stream, int n) const { return random_ids(f_.seed * 10000 + static_cast<uint64_t>(stream), n, n_vocab()); }

  Result<Response> timed(const Ids& prompt, int n, double& first_token_ms) {
    auto client = MINFER_TRY(Client::start(*engine_, greedy(prompt, n)));
    Response response = MINFER_TRY(client->join());
    first_token_ms = client->first_ms();
    return response;
  }

  Flags f_;
  std::unique_ptr<Engine> engine_;
};

// A fresh folder in the one that was given, so that the first turn finds nothing; removed at the end.
class StoreFolder {
 public:
  explicit StoreFolder(std::string& path) {
    if (path.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(path, ignored);
    path += "/bench-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return;  // the engine says what is wrong with it
    path_ = path;
  }
  ~StoreFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;

 private:
  std::string path_;
};

int report(const std::string& scenario, const Result<Json>& result, const Json& about) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().message.c_str());
    return 1;
  }
  Json out = {{"scenario", scenario}};
  out.update(*result);
  out.update(about);
  std::printf("%s\n", out.dump().c_str());
  return 0;
}

int run(const std::string& scenario, Flags flags) {
  const StoreFolder folder(flags.options.kv_store);
  auto bench = Bench::create(std::move(flags));
  if (!bench.ok()) return report(scenario, std::move(bench).error(), {});
  const Result<Json> result = scenario == "decode"   ? bench->decode()
                              : scenario == "shared" ? bench->shared()
                              : scenario == "stall"  ? bench->stall()
                              : scenario == "draft"  ? bench->draft()
                                                     : bench->turn();
  return report(scenario, result, result.ok() ? bench->about() : Json());
}

}  // namespace
}  // namespace minfer::bench

int main(int argc, char** argv) {
  using namespace minfer::bench;
  CLI::App app("Measures the engine through its public interface");
  app.require_subcommand(1);
  Flags f;
  std::string chosen;
  const auto add = [&](const char* name, const char* what, int sequences, int prompt, int predict) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->add_option("model", f.model)->required();
    const CLI::Range tokens(1, 1 << 20), count(1, 1024);
    sub->add_option("-s", f.sequences, "sequences")->check(count);
    sub->add_option("-p", f.prompt, "tokens of each prompt")->check(tokens);
    sub->add_option("-n", f.predict, "tokens of each answer")->check(tokens);
    sub->add_option("--seed", f.seed, "of the prompts");
    add_engine_flags(*sub, f.options);
    sub->preparse_callback(
        [&f, sequences, prompt, predict](size_t) { f.sequences = sequences, f.prompt = prompt, f.predict = predict; });
    sub->callback([&chosen, name] { chosen = name; });
    return sub;
  };
  add("decode", "answers that grow together", 16, 16, 128);
  add("shared", "prompts that begin alike", 16, 512, 64)->add_option("--percent", f.percent)->check(CLI::Range(0, 100));
  CLI::App* stall = add("stall", "a long prompt among streams", 8, 32, 4000);
  stall->add_option("--long", f.long_prompt, "tokens of the long prompt")->check(CLI::Range(1, 1 << 20));
  stall->add_option("--before", f.before_ms, "milliseconds before it arrives")->check(CLI::Range(0.0, 1e5));
  CLI::App* draft = add("draft", "guesses of a draft model", 1, 16, 128);
  draft->add_option("draft", f.options.draft_model)->required();
  draft->add_option("--draft-max", f.options.draft_tokens, "tokens it guesses ahead at most");
  draft->add_option("--temp", f.temperature, "of the answers")->check(CLI::Range(0.0, 2.0));
  draft->add_option("-r", f.rounds, "rounds")->check(CLI::Range(1, 100));
  CLI::App* turn = add("turn", "the second turn of a conversation", 1, 3000, 64);
  turn->add_option("-q", f.question, "tokens of the second question")->check(CLI::Range(1, 1 << 20));
  turn->add_option("--kv-store", f.options.kv_store, "measure a restart too, with a store in this folder");
  CLI11_PARSE(app, argc, argv);
  return run(chosen, std::move(f));
}
