// The hidden states that embeddings are made of: multiplied with the output matrix in f64 they must be the logits that
// Hugging Face transformers gave, and how a step is cut changes no bit of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "golden.h"

namespace minfer::golden {
namespace {

class Hidden : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Hidden, ::testing::ValuesIn(families()), [](const auto& p) { return p.param; });

std::vector<float> all_hidden(Runner& runner, std::span<const int32_t> ids, size_t piece) {
  std::vector<float> out;
  const int32_t seq = *runner.open_sequence();
  for (size_t at = 0; at < ids.size(); at += piece) {
    std::vector<BatchToken> batch;
    for (size_t i = at; i < std::min(at + piece, ids.size()); ++i)
      batch.push_back({ids[i], static_cast<int32_t>(i), seq, true});
    const auto rows = runner.step_hidden(batch);
    if (!rows.ok()) {
      ADD_FAILURE() << rows.error().message;
      break;
    }
    out.insert(out.end(), rows->begin(), rows->end());
  }
  runner.close_sequence(seq);
  return out;
}

TEST_P(Hidden, MakeTheLogitsOfTransformers) {
  const Golden g = load(GetParam());
  ASSERT_NE(g.model, nullptr);
  const HParams& hp = g.model->hparams();
  const auto runner = make_runner(*g.model, {});
  ASSERT_NE(runner, nullptr);
  const TensorView& w = g.model->weights().weights()[static_cast<size_t>(g.model->weight_ids().output)].plain;
  ASSERT_EQ(w.dtype, DType::kF32);
  const auto n_vocab = static_cast<size_t>(hp.n_vocab), n_embd = static_cast<size_t>(hp.n_embd);
  for (const Sequence& s : g.sequences) {
    const std::vector<float> hidden = all_hidden(*runner, s.ids, s.ids.size());
    ASSERT_EQ(hidden.size(), s.ids.size() * n_embd);
    double worst = 0, largest = 0;
    for (size_t i = 0; i < s.expected.size(); ++i) {
      const float* h = hidden.data() + static_cast<size_t>(s.rows[i / n_vocab]) * n_embd;
      double logit = 0;
      for (size_t f = 0; f < n_embd; ++f)
        logit += static_cast<double>(h[f]) * static_cast<double>(w.row<float>(static_cast<int64_t>(i % n_vocab))[f]);
      if (hp.final_softcap > 0) logit = hp.final_softcap * std::tanh(logit / hp.final_softcap);
      const double error = std::abs(logit - s.expected[i]);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
      largest = std::max(largest, std::abs(s.expected[i]));
    }
    // As for the logits themselves (logits_test.cpp), whose last product is exact here.
    const double k = std::max({hp.n_embd, hp.n_ff, hp.n_head * hp.head_dim});
    EXPECT_LE(worst, 4 * 0x1p-24 * std::sqrt(k) * hp.n_layer * largest);
  }
}

TEST_P(Hidden, PiecesAndDevicesGiveTheSameBits) {
  const Golden g = load(GetParam());
  ASSERT_NE(g.model, nullptr);
  const auto& ids = g.sequences[0].ids;
  const auto reference = make_runner(*g.model, {});
  ASSERT_NE(reference, nullptr);
  const auto want = all_hidden(*reference, ids, ids.size());
  for (const Device& device : devices()) {
    RunSetup setup;
    setup.device = device;
    const auto runner = make_runner(*g.model, setup);
    ASSERT_NE(runner, nullptr);
    for (size_t piece : {size_t{1}, size_t{7}, ids.size()})
      EXPECT_EQ(first_difference(all_hidden(*runner, ids, piece), want, g.model->hparams().n_embd), "")
          << device.name() << ", pieces of " << piece;
  }
}

}  // namespace
}  // namespace minfer::golden
