// Random mixes of requests on tiny models: whatever runs together, however memory and time are cut, every answer has
// the bits of the request decoded alone by the plainest means, and every page is free in the end. MINFER_MIXES sets the
// number of mixes (default 30), MINFER_MIX_SEED the first seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

#include "engine/testing/golden_variant.h"
#include "engine/testing/plain_decode.h"
#include "minfer/engine.h"

namespace minfer {
namespace {

using testing::difference;
using testing::PlainDecoder;

int env_int(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 ? std::atoi(text) : fallback;
}

class Mix {
 public:
  explicit Mix(uint32_t seed) : random_(seed) {}

  void run() {
    const std::string family = pick<std::string>({"llama", "qwen3", "gemma3", "mistral", "mixtral"});
    auto model = testing::open_golden(family);
    ASSERT_NE(model, nullptr);
    n_vocab_ = model->hparams().n_vocab;
    const auto reference_model = testing::open_golden(family);
    EngineOptions o;
    o.n_threads = pick<int>({1, 2, 3});
    o.ctx = std::min(64 + below(200), model->hparams().n_ctx_train);
    const bool q8 = model->hparams().head_dim % 32 == 0;
    o.cache_type_k = pick<std::string>({"f32", "f16", "bf16", q8 ? "q8_0" : "f16"});
    o.cache_type_v = pick<std::string>({"f32", "f16", "bf16", q8 ? "q8_0" : "f16"});
    const DType k = type(o.cache_type_k), v = type(o.cache_type_v);
    const int64_t per_page = kv_bytes_per_token(model->hparams(), k, v) * 32;
    o.kv_memory = per_page * ((o.ctx + 31) / 32 + below(3) * below(12));  // from hardly enough to plenty
    o.max_running = 1 + below(7);
    o.chunk = 1 + below(pick<int>({4, 40, 512}));
    o.max_stall_ms = pick<double>({1, 5, 200});
    o.stream_tokens = pick<int32_t>({1, 8, 1024});
    o.prefix_cache = below(6) != 0;
    o.speculation = pick<int32_t>({0, 1, 3, 8});
    std::optional<testing::GoldenVariant> variant;
    if (below(2) == 0) {  // a draft model: the same, or one that guesses less well
      if (below(2) == 0) variant.emplace(family);
      o.draft_model = variant ? variant->path() : testing::golden_path(family);
      o.draft_tokens = 1 + below(10);
      const int64_t page = kv_bytes_per_token(model->hparams(), DType::kF16, DType::kF16) * 32;
      if (below(2) == 0) o.draft_kv_memory = page * (1 + below(8));
    }
    auto made = Engine::create(std::move(model), o);
    ASSERT_TRUE(made.ok()) << made.error().message;
    Engine& engine = **made;
    ctx_ = engine.n_ctx();
    PlainDecoder plain(*reference_model, k, v, ctx_);
    for (int i = 0; i < 3; ++i) roots_.push_back(ids(ctx_));

    struct Sent {
      Request request;
      Response want;
      bool may_be_cut = false;
      int cancel_after = -1;  // events
    };
    std::vector<Sent> sent(static_cast<size_t>(1 + below(14)));
    for (Sent& s : sent) {
      s.request = request();
      s.want = plain.answer(s.request);
      if (s.request.best_of > 0) continue;  // what is cut ranks differently
      if (below(6) == 0) s.cancel_after = below(12), s.may_be_cut = true;
      if (below(10) == 0) s.request.deadline_ms = 1 + below(30), s.may_be_cut = true;
    }
    EmbedRequest embed;
    embed.pooling = pick<Pooling>({Pooling::kMean, Pooling::kLast, Pooling::kCls, Pooling::kNone});
    embed.normalize = below(2) == 0;
    embed.priority = below(3);
    for (int i = 1 + below(4); i > 0; --i) {
      embed.prompts.push_back(roots_[static_cast<size_t>(below(3))]);
      embed.prompts.back().resize(static_cast<size_t>(1 + below(ctx_)));
    }
    const Embeddings embeddings = plain.embed(embed);
    std::thread embedder([&] {
      const auto got = engine.embed(embed);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(got->rows, embeddings.rows) << family << ", embeddings";
    });
    // Some threads submit a request each and read its stream.
    std::atomic<size_t> next{0};
    std::vector<std::string> problems(sent.size());
    std::vector<uint32_t> naps(sent.size());
    for (auto& n : naps) n = random_() % 2000;
    const auto client = [&] {
      for (size_t i; (i = next.fetch_add(1)) < sent.size();)
        problems[i] = follow(engine, sent[i].request, sent[i].want, sent[i].may_be_cut, sent[i].cancel_after, naps[i]);
    };
    std::vector<std::thread> clients;
    const int n_clients = 1 + below(8);
    for (int i = 0; i < n_clients; ++i) clients.emplace_back(client);
    for (auto& t : clients) t.join();
    embedder.join();
    for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(problems[i], "") << family << ", request " << i;
    const Status idle = engine.check_idle();
    EXPECT_TRUE(idle.ok()) << idle.error().message;
    const Status cleared = engine.check_idle(/*clear=*/true);
    EXPECT_TRUE(cleared.ok()) << cleared.error().message;
    const EngineStats stats = engine.stats();
    EXPECT_EQ(stats.draft_failures, 0);
    preemptions += stats.preemptions, cached += stats.tokens_cached;
    model_accepted += stats.draft_model_tokens_accepted;
    model_refused += stats.draft_model_tokens - stats.draft_model_tokens_accepted;
    accepted += stats.draft_tokens_accepted - stats.draft_model_tokens_accepted;
  }

  // Over all mixes: they must have happened.
  static int64_t preemptions, cached, accepted, model_accepted, model_refused;

 private:
  int32_t below(int32_t n) { return n <= 0 ? 0 : static_cast<int32_t>(random_() % static_cast<uint32_t>(n)); }
  template <typename T>
  T pick(std::vector<T> from) {
    return from[static_cast<size_t>(below(static_cast<int32_t>(from.size())))];
  }
  static DType type(const std::string& name) {
    return name == "f32" ? DType::kF32 : name == "f16" ? DType::kF16 : name == "bf16" ? DType::kBF16 : DType::kQ8_0;
  }
  std::vector<int32_t> ids(int32_t n) {
    std::vector<int32_t> out;
    for (int32_t i = 0; i < n; ++i) out.push_back(below(n_vocab_));
    return out;
  }

  Request request() {
    Request r;
    const auto& root = roots_[static_cast<size_t>(below(3))];
    const int32_t from_root = below(3) == 0 ? 0 : below(ctx_ - 2);
    r.prompt.assign(root.begin(), root.begin() + from_root);
    for (int32_t id : ids(1 + below(std::min(40, ctx_ - from_root - 1)))) r.prompt.push_back(id);
    const auto room = ctx_ - static_cast<int32_t>(r.prompt.size()) + 1;
    r.max_tokens = below(5) == 0 ? -1 : below(std::min(room, 50) + 1);
    if (below(4) == 0) r.min_tokens = below(std::min(room, r.max_tokens < 0 ? 20 : r.max_tokens + 1));
    r.n = below(4) == 0 ? 1 + below(4) : 1;
    if (below(8) == 0) r.best_of = r.n + below(4);
    r.ignore_eos = below(2) == 0;
    r.show_control = below(3) == 0;
    for (int i = below(3); i > 0; --i) r.stop_ids.push_back(below(n_vocab_));
    if (below(3) == 0) r.stop = {std::string(1, static_cast<char>('a' + below(26))), "th", "e "};
    r.logprobs = below(2) == 0;
    if (below(4) == 0) r.top_logprobs = 1 + below(6), r.logprobs = true;
    if (below(3) == 0) r.logprobs_of = LogprobsOf::kSampled;
    r.prompt_logprobs = below(6) == 0;
    r.priority = below(3);
    r.client = std::string(1, static_cast<char>('a' + below(3)));
    r.speculate = below(4) != 0;
    SamplingParams& s = r.sampling;
    s.temperature = pick<float>({0, 0.5f, 1, 2});
    s.seed = random_();
    s.top_k = pick<int32_t>({0, 5, 40});
    if (below(3) == 0) s.repeat_penalty = 1.2f, s.repeat_last_n = pick<int32_t>({-1, 8, 64});
    if (below(5) == 0) {  // samplers that remember what they drew
      s.mirostat = 1 + below(2), s.mirostat_tau = 3;
    } else if (below(5) == 0) {
      s.adaptive_target = 0.3f;
    }
    if (below(5) == 0) s.dry_multiplier = 0.8f, s.dry_allowed_length = 1;
    if (s.mirostat == 0 && below(5) == 0) s.xtc_probability = 0.5f;
    if (below(5) == 0) s.logit_bias = {{below(n_vocab_), 3.0f}, {below(n_vocab_), -2.0f}};
    if (below(6) == 0) {  // ids of one parity only, changing with each token
      r.mask = [ends = r.stop_ids](int32_t choice, std::span<const int32_t> generated,
                                   std::span<uint32_t> allowed) -> Status {
        for (int32_t id : generated) {
          if (std::count(ends.begin(), ends.end(), id) > 0) return Error{ErrorCode::kInternal, "asked behind the end"};
        }
        const bool odd = (generated.size() + static_cast<size_t>(choice)) % 2 == 0;
        std::fill(allowed.begin(), allowed.end(), odd ? 0xaaaaaaaau : 0x55555555u);
        return {};
      };
    }
    return r;
  }

  static std::string follow(Engine& engine, const Request& request, const Response& want, bool may_be_cut,
                            int cancel_after, uint32_t nap_us) {
    if (nap_us % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(nap_us));
    auto stream = engine.submit(request);
    if (!stream.ok()) return stream.error().message;
    std::vector<Choice> joined(static_cast<size_t>(request.n));
    std::vector<bool> ended(joined.size(), false);
    for (int events = 0;; ++events) {
      if (events == cancel_after) stream->cancel();
      auto event = stream->next();
      if (!event.ok()) return event.error().message;
      if (!*event) break;
      const Event& e = **event;
      const auto c = static_cast<size_t>(e.choice);
      if (ended[c]) return "an event after the last";
      joined[c].ids.insert(joined[c].ids.end(), e.ids.begin(), e.ids.end());
      joined[c].text += e.text;
      joined[c].logprobs.insert(joined[c].logprobs.end(), e.logprobs.begin(), e.logprobs.end());
      if (e.finish) ended[c] = true, joined[c].finish = *e.finish;
      if (nap_us % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(nap_us % 200));
    }
    const auto got = stream->wait();
    if (!got.ok()) return got.error().message;
    for (size_t c = 0; c < joined.size(); ++c) {
      if (!ended[c]) return "no last event";
      joined[c].stop = got->choices[c].stop;
      if (const auto d = difference(joined[c], got->choices[c]); !d.empty()) return "the stream: " + d;
      const bool cut =
          may_be_cut && (joined[c].finish == FinishReason::kCancelled || joined[c].finish == FinishReason::kDeadline);
      if (const auto d = difference(got->choices[c], want.choices[c], cut); !d.empty())
        return "choice " + std::to_string(c) + ": " + d;
    }
    if (!may_be_cut) return difference(got->prompt_logprobs, want.prompt_logprobs);
    return "";
  }

  std::mt19937 random_;
  int32_t n_vocab_ = 0, ctx_ = 0;
  std::vector<std::vector<int32_t>> roots_;
};

int64_t Mix::preemptions = 0, Mix::cached = 0, Mix::accepted = 0, Mix::model_accepted = 0, Mix::model_refused = 0;

TEST(EngineProperty, EveryAnswerIsAsIfAlone) {
  const int mixes = env_int("MINFER_MIXES", 30), first = env_int("MINFER_MIX_SEED", 1);
  for (int i = 0; i < mixes; ++i) {
    SCOPED_TRACE("MINFER_MIX_SEED=" + std::to_string(first + i) + " MINFER_MIXES=1");
    Mix(static_cast<uint32_t>(first + i)).run();
    if (HasFailure()) return;
  }
  std::printf(
      "%d mixes: %lld preemptions, %lld tokens from the cache, guesses that came true %lld, of the draft model's %lld, "
      "and %lld not\n",
      mixes, static_cast<long long>(Mix::preemptions), static_cast<long long>(Mix::cached),
      static_cast<long long>(Mix::accepted), static_cast<long long>(Mix::model_accepted),
      static_cast<long long>(Mix::model_refused));
  if (mixes >= 20) {
    EXPECT_GT(Mix::preemptions, 0);
    EXPECT_GT(Mix::cached, 0);
  }
  if (mixes >= 200) {  // how much is guessed follows the time that steps take
    EXPECT_GT(Mix::accepted, 0);
    EXPECT_GT(Mix::model_accepted, 0);
    EXPECT_GT(Mix::model_refused, 0);
  }
}

}  // namespace
}  // namespace minfer
