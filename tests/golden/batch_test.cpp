// What else is in the step must not matter: sequences run together give the bits they give alone, wherever their pages
// lie, and a conversation in progress makes no new plans.
#include <gtest/gtest.h>

#include <algorithm>

#include "golden.h"

namespace minfer::golden {
namespace {

class Batch : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Batch, ::testing::ValuesIn(families()), [](const auto& p) { return p.param; });

// One request among others: its ids, how many are fed per step (as prefill chunks), when it joins.
struct Request {
  std::vector<int32_t> ids;
  size_t piece, joins;
  int32_t seq = -1;
  size_t fed = 0;
  std::vector<float> logits;  // of all ids
};

TEST_P(Batch, SequencesTogetherAreTheSameAsAlone) {
  const Golden g = load(GetParam());
  ASSERT_NE(g.model, nullptr);
  const auto n_vocab = static_cast<size_t>(g.model->hparams().n_vocab);
  const auto& long_ids = g.sequences[0].ids;
  const auto& short_ids = g.sequences[1].ids;
  for (const Device& device : devices()) {
    for (DType kv : {DType::kF32, kv_types(*g.model).back()}) {
      RunSetup setup;
      setup.device = device, setup.kv = kv, setup.n_threads = 2, setup.n_seqs = 4;
      auto runner = make_runner(*g.model, setup);
      ASSERT_NE(runner, nullptr);
      // Decodes beside prefills, joining and leaving at different steps.
      std::vector<Request> requests{
          {long_ids, 19, 0}, {short_ids, 1, 0}, {short_ids, 5, 2}, {{long_ids.rbegin(), long_ids.rend()}, 40, 3}};
      const int32_t pages = runner->pages_free();
      for (size_t step = 0;
           std::any_of(requests.begin(), requests.end(), [](const Request& r) { return r.fed < r.ids.size(); });
           ++step) {
        std::vector<BatchToken> batch;
        std::vector<Request*> owners;
        for (Request& r : requests) {
          if (step < r.joins || r.fed == r.ids.size()) continue;
          if (r.seq < 0) {
            const auto seq = runner->open_sequence();
            ASSERT_TRUE(seq.ok()) << seq.error().message;
            r.seq = *seq;
          }
          for (size_t i = 0; i < r.piece && r.fed < r.ids.size(); ++i, ++r.fed) {
            batch.push_back({r.ids[r.fed], static_cast<int32_t>(r.fed), r.seq, true});
            owners.push_back(&r);
          }
        }
        const auto logits = runner->step(batch);
        ASSERT_TRUE(logits.ok()) << logits.error().message;
        ASSERT_EQ(logits->size(), owners.size() * n_vocab);
        for (size_t i = 0; i < owners.size(); ++i) {
          const auto row = logits->subspan(i * n_vocab, n_vocab);
          owners[i]->logits.insert(owners[i]->logits.end(), row.begin(), row.end());
        }
        for (Request& r : requests) {
          if (r.fed == r.ids.size() && r.seq >= 0) runner->close_sequence(r.seq), r.seq = -1, r.joins = SIZE_MAX;
        }
      }
      EXPECT_EQ(runner->pages_free(), pages);
      for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(first_difference(requests[i].logits, all_logits(*runner, requests[i].ids, 0),
                                   static_cast<int64_t>(n_vocab)),
                  "")
            << device.name() << ", KV " << dtype_info(kv).name << ", request " << i;
      }
    }
  }
}

TEST_P(Batch, DecodeMakesNoPlans) {
  const Golden g = load(GetParam());
  ASSERT_NE(g.model, nullptr);
  const auto& ids = g.sequences[0].ids;
  for (const Device& device : devices()) {
    RunSetup setup;
    setup.device = device;
    setup.n_ctx = std::min<int32_t>(g.model->hparams().n_ctx_train, 256);  // one tile: also without a fused attention
    auto runner = make_runner(*g.model, setup);
    ASSERT_NE(runner, nullptr);
    const auto seq = runner->open_sequence();
    ASSERT_TRUE(seq.ok());
    int64_t after_first = 0;
    for (int32_t i = 0; i < std::min<int32_t>(runner->n_ctx(), static_cast<int32_t>(ids.size())); ++i) {
      const BatchToken token{ids[static_cast<size_t>(i)], i, *seq, true};
      const auto logits = runner->step({&token, 1});
      ASSERT_TRUE(logits.ok()) << logits.error().message;
      if (i == 0) after_first = runner->plans_made();
    }
    EXPECT_EQ(runner->plans_made(), after_first) << device.name();
    EXPECT_EQ(after_first, 1) << device.name();
  }
}

}  // namespace
}  // namespace minfer::golden
