// Every family's logits against those of Hugging Face transformers in float64, and all ways of computing them against
// each other, bit for bit: devices, instruction sets, threads, pieces, rows wanted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "golden.h"

namespace minfer::golden {
namespace {

class Family : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Family, ::testing::ValuesIn(families()), [](const auto& p) { return p.param; });

// How far logits may be from the exact ones. A dot product of k terms makes k roundings of relative size u; they have
// random signs, so the sum is off by some sqrt(k) * u of its size. The errors of the layers add up in the residual
// stream, which the last norm and the output matrix turn into logits of size logit_max. The factor 4 is the number of
// standard deviations that the worst of some 10^4 logits stays within. (In f32 the goldens reach 0.29 of this.)
double tolerance(const HParams& hp, double u, double logit_max) {
  constexpr double kDeviations = 4;
  const double k = std::max({hp.n_embd, hp.n_ff, hp.n_head * hp.head_dim});
  return kDeviations * u * std::sqrt(k) * hp.n_layer * logit_max;
}

// Unit roundoff of what a K or V row goes through: 2^-p for p bits of mantissa; half a step of 1/127 of the maximum.
double roundoff(DType kv) {
  switch (kv) {
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    case DType::kQ8_0: return 0.5 / 127;
    default: return 0x1p-24;
  }
}

// The largest error over the listed rows, as a multiple of the tolerance; infinity for a NaN.
double error_in_tolerances(const Model& model, const Sequence& s, DType kv) {
  RunSetup setup;
  setup.kv = kv;
  auto runner = make_runner(model, setup);
  if (runner == nullptr) return INFINITY;
  const auto n_vocab = static_cast<size_t>(model.hparams().n_vocab);
  const std::vector<float> got = all_logits(*runner, s.ids, 0);
  if (got.size() != s.ids.size() * n_vocab) return INFINITY;
  double worst = 0, logit_max = 0;
  for (size_t i = 0; i < s.expected.size(); ++i) {
    const double error =
        std::abs(got[static_cast<size_t>(s.rows[i / n_vocab]) * n_vocab + i % n_vocab] - s.expected[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    logit_max = std::max(logit_max, std::abs(s.expected[i]));
  }
  return worst / tolerance(model.hparams(), roundoff(kv), logit_max);
}

TEST_P(Family, LogitsAreThoseOfTransformers) {
  const Golden g = load(GetParam());
  ASSERT_NE(g.model, nullptr);
  for (size_t i = 0; i < g.sequences.size(); ++i) {
    for (DType kv : kv_types(*g.model)) {
      EXPECT_LE(error_in_tolerances(*g.model, g.sequences[i], kv), 1.0)
          << "sequence " << i << ", KV " << dtype_info(kv).name;
    }
  }
}

TEST_P(Family, EveryDeviceThreadCountAndPieceGivesTheSameBits) {
  const Golden g = load(GetParam());
  ASSERT_NE(g.model, nullptr);
  const int64_t n_vocab = g.model->hparams().n_vocab;
  for (DType kv : kv_types(*g.model)) {
    RunSetup reference;
    reference.kv = kv;
    auto ref = make_runner(*g.model, reference);
    ASSERT_NE(ref, nullptr);
    std::vector<std::vector<float>> want;
    for (const Sequence& s : g.sequences) want.push_back(all_logits(*ref, s.ids, 0));
    for (const Device& device : devices()) {
      for (int n_threads : {1, 2, 3}) {
        RunSetup setup;
        setup.device = device, setup.kv = kv, setup.n_threads = n_threads;
        auto runner = make_runner(*g.model, setup);
        ASSERT_NE(runner, nullptr);
        // 1: decode; 7: pieces that meet no boundary of pages or tiles; 32: pages; 0: whole. Hundreds of steps of
        // several threads take long on a busy machine, so of those fewer.
        const std::vector<size_t> pieces = n_threads == 1   ? std::vector<size_t>{1, 7, 32, 0}
                                           : n_threads == 2 ? std::vector<size_t>{1, 7, 0}
                                                            : std::vector<size_t>{0};
        for (size_t piece : pieces) {
          for (size_t i = 0; i < g.sequences.size(); ++i) {
            if (n_threads > 1 && piece != 0 && (g.sequences[i].ids.size() > 60 || kv != DType::kF16)) continue;
            EXPECT_EQ(first_difference(all_logits(*runner, g.sequences[i].ids, piece), want[i], n_vocab), "")
                << device.name() << ", " << n_threads << " threads, KV " << dtype_info(kv).name << ", pieces of "
                << piece << ", sequence " << i;
          }
        }
      }
    }
  }
}

// Only the wanted rows run the last layer's tail; they come out as if all had been wanted.
TEST_P(Family, RowsAloneAreTheSameAsAmongAll) {
  const Golden g = load(GetParam());
  ASSERT_NE(g.model, nullptr);
  const auto n_vocab = static_cast<size_t>(g.model->hparams().n_vocab);
  const Sequence& s = g.sequences.back();
  for (const Device& device : devices()) {
    RunSetup setup;
    setup.device = device, setup.kv = DType::kF16, setup.n_threads = 2;
    auto runner = make_runner(*g.model, setup);
    ASSERT_NE(runner, nullptr);
    const std::vector<float> all = all_logits(*runner, s.ids, 0);
    const auto seq = runner->open_sequence();
    ASSERT_TRUE(seq.ok());
    // A prefill without logits, then one that wants its 3rd and last row.
    const size_t cut = s.ids.size() / 2;
    std::vector<BatchToken> first, second;
    for (size_t i = 0; i < s.ids.size(); ++i) {
      const bool want = i == cut + 2 || i + 1 == s.ids.size();
      (i < cut ? first : second).push_back({s.ids[i], static_cast<int32_t>(i), *seq, want});
    }
    const auto none = runner->step(first);
    ASSERT_TRUE(none.ok()) << none.error().message;
    EXPECT_TRUE(none->empty());
    const auto two = runner->step(second);
    ASSERT_TRUE(two.ok()) << two.error().message;
    std::vector<float> want(all.begin() + static_cast<std::ptrdiff_t>((cut + 2) * n_vocab),
                            all.begin() + static_cast<std::ptrdiff_t>((cut + 3) * n_vocab));
    want.insert(want.end(), all.end() - static_cast<std::ptrdiff_t>(n_vocab), all.end());
    EXPECT_EQ(first_difference(*two, want, static_cast<int64_t>(n_vocab)), "") << device.name();
  }
}

// --- does the tolerance see a mistake?
// -----------------------------------------------------------------------------------
struct Mistake {
  const char* family;
  const char* key;
  double value;
  friend void PrintTo(const Mistake& m, std::ostream* out) { *out << m.family << ": " << m.key << " = " << m.value; }
};

class Tolerance : public ::testing::TestWithParam<Mistake> {};
INSTANTIATE_TEST_SUITE_P(Sees, Tolerance,
                         ::testing::Values(Mistake{"llama", "llama.rope.freq_base", 10100},
                                           Mistake{"mistral", "llama.attention.sliding_window", 22},
                                           Mistake{"mistral", "llama.attention.sliding_window", 20},
                                           Mistake{"mixtral", "llama.expert_used_count", 3},
                                           Mistake{"qwen2", "qwen2.attention.layer_norm_rms_epsilon", 2e-5},
                                           Mistake{"qwen3", "qwen3.rope.scaling.factor", 4.04},
                                           Mistake{"qwen3", "qwen3.rope.scaling.original_context_length", 48},
                                           Mistake{"gemma", "gemma.rope.freq_base", 10100},
                                           Mistake{"gemma3", "gemma3.rope.local.freq_base", 10100},
                                           Mistake{"gemma3", "gemma3.attention.sliding_window_pattern", 2},
                                           Mistake{"gemma3", "gemma3.rope.scaling.factor", 8.08}));

TEST_P(Tolerance, AWrongHyperparameter) {
  const Mistake m = GetParam();
  const Golden g = load(m.family);
  ASSERT_NE(g.model, nullptr);
  const gguf::Value* old = g.model->file()->metadata().find(m.key);
  ASSERT_NE(old, nullptr);
  const auto model = open_edited(*g.model->file(), [&](gguf::MetadataBuilder& metadata) {
    if (gguf::value_type_is_integer(old->type)) {
      metadata.set(m.key, static_cast<uint32_t>(m.value));
    } else {
      metadata.set(m.key, static_cast<float>(m.value));
    }
  });
  ASSERT_NE(model, nullptr);
  EXPECT_GT(error_in_tolerances(*model, g.sequences[0], DType::kF32), 3.0) << m.key << " = " << m.value;
}

}  // namespace
}  // namespace minfer::golden
