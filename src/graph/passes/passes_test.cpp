// Passes: node lists before and after, on a small decoder and on cases where a fusion must not happen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "graph/passes/pass.h"
#include "graph/testing/tiny_graph.h"

namespace minfer {
namespace {

using testing::count_ops;
using ::testing::HasSubstr;
using testing::make_tiny_graph;
using testing::op_names;
using testing::TinyGraph;

Graph tiny(const TinyGraph& t) {
  auto g = make_tiny_graph(t);
  EXPECT_TRUE(g.ok()) << g.error().message;
  return g.ok() ? std::move(*g) : Graph{};
}

void fuse(Graph& g, const std::vector<std::string>& disabled = {}) {
  auto reports = run_passes(g, fusion_passes(), disabled);
  ASSERT_TRUE(reports.ok()) << reports.error().message;
}

// Applies one pass only.
void apply(Graph& g, const std::string& name) {
  for (const Pass& p : fusion_passes()) {
    if (name != p.name) continue;
    auto reports = run_passes(g, {&p, 1}, {});
    ASSERT_TRUE(reports.ok()) << reports.error().message;
    return;
  }
  FAIL() << "no pass " << name;
}

Status to_primitives(Graph& g) {
  return decompose(g, [](const Graph&, const Node& n) { return !op_info(n.op).composite; });
}

TEST(Passes, DecoderLayerBecomesSevenNodes) {
  Graph g = tiny({.n_layer = 1});
  EXPECT_EQ(op_names(g),
            "embed rms_norm mul matmul matmul matmul rope_table rope rope kv_store_k kv_store_v attn_scores "
            "attn_softmax attn_mix "
            "matmul add rms_norm mul matmul matmul unary mul matmul add rms_norm mul matmul");
  fuse(g);
  EXPECT_EQ(op_names(g),
            "embed norm_matmul_group rope_table rope_store attention matmul_add norm_matmul_group gated_act matmul_add "
            "norm_matmul_group");
}

TEST(Passes, NormsAndBiasesOfQkAreFusedToo) {
  Graph plain = tiny({.n_layer = 1}), g = tiny({.n_layer = 1, .qk_norm = true, .bias = true});
  fuse(plain);
  fuse(g);
  EXPECT_EQ(op_names(g), op_names(plain));
  for (const Node& n : g.nodes) {
    if (n.op == Op::kRopeStore) {
      EXPECT_NE(n.inputs[3], kNoValue);
      EXPECT_NE(n.inputs[4], kNoValue);
      EXPECT_EQ(n.attrs.eps, 1e-6f);
      EXPECT_EQ(n.attrs.n_head, 4);
      EXPECT_EQ(n.attrs.layer, 0);
    }
    if (n.op == Op::kNormMatMulGroup && n.attrs.n_group == 3) {
      for (size_t i = 5; i < 8; ++i) EXPECT_NE(n.inputs[i], kNoValue);
    }
  }
}

// The limit for a decode token on the geometry of Qwen3-0.6B is 300 dispatched ops.
TEST(Passes, TwentyEightLayersStayUnderThreeHundredNodes) {
  Graph g = tiny({.n_layer = 28, .n_tokens = 1, .n_outputs = 1, .qk_norm = true});
  fuse(g);
  EXPECT_EQ(g.nodes.size(), 28u * 7 + 3);  // embed, rope_table, output norm with the logits
  EXPECT_EQ(count_ops(g, Op::kAttention), 28);
  EXPECT_EQ(count_ops(g, Op::kRopeTable), 1);
}

TEST(Passes, PrunedLastLayerKeepsItsOwnRope) {
  Graph g = tiny({.n_layer = 2, .n_tokens = 5, .n_outputs = 1, .qk_norm = true});
  fuse(g);
  EXPECT_EQ(op_names(g),
            "embed norm_matmul_group rope_table rope_store attention matmul_add norm_matmul_group gated_act matmul_add "
            "rms_norm_mul get_rows get_rows matmul matmul_group rms_norm_mul rope_table rope rope_store attention "
            "matmul_add norm_matmul_group gated_act matmul_add norm_matmul_group");
  const auto last =
      std::find_if(g.nodes.rbegin(), g.nodes.rend(), [](const Node& n) { return n.op == Op::kRopeStore; });
  EXPECT_EQ(last->inputs[0], kNoValue);
  EXPECT_TRUE(last->outputs.empty());
  EXPECT_NE(last->inputs[4], kNoValue);  // k's norm is inside all the same
}

TEST(Passes, DecomposingTheFusedGraphGivesPrimitivesAgain) {
  for (bool prune : {false, true}) {
    Graph g = tiny({.n_layer = 2, .n_tokens = 3, .n_outputs = prune ? 1 : 3, .qk_norm = true, .bias = true});
    apply(g, "merge_equal");
    Graph fused = g;
    fuse(fused);
    ASSERT_TRUE(to_primitives(fused).ok());
    const Status ok = verify(fused);
    ASSERT_TRUE(ok.ok()) << ok.error().message;
    for (int op = 0; op < kOpCount; ++op) {
      EXPECT_EQ(count_ops(fused, static_cast<Op>(op)), count_ops(g, static_cast<Op>(op)))
          << op_info(static_cast<Op>(op)).name;
    }
  }
}

TEST(Passes, DecomposeKeepsWhatIsWantedAndRefusesMissingPrimitives) {
  Graph g = tiny({.n_layer = 1, .bias = true});
  fuse(g);
  // a backend without matmul_group but with matmul_add gets the latter
  Graph h = g;
  ASSERT_TRUE(decompose(h, [](const Graph&, const Node& n) {
                return n.op != Op::kNormMatMulGroup && n.op != Op::kMatMulGroup;
              }).ok());
  ASSERT_TRUE(verify(h).ok());
  EXPECT_EQ(count_ops(h, Op::kMatMulAdd), 2 + 3);
  EXPECT_EQ(count_ops(h, Op::kMatMul), 1 + 2);
  EXPECT_EQ(count_ops(h, Op::kAttention), 1);

  const Status refused =
      decompose(g, [](const Graph&, const Node& n) { return n.op != Op::kAttention && n.op != Op::kAttnMix; });
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("[attn_mix]"));
}

TEST(Passes, RunnerSkipsReportsAndObserves) {
  Graph g = tiny({.n_layer = 1});
  int calls = 0;
  auto reports = run_passes(g, fusion_passes(), {"fuse_attention", "fuse_rope_store"},
                            [&](const char*, bool, const Graph&) { ++calls; });
  ASSERT_TRUE(reports.ok());
  EXPECT_EQ(count_ops(g, Op::kAttnScores), 1);
  EXPECT_EQ(count_ops(g, Op::kKvStoreK), 1);
  EXPECT_EQ(count_ops(g, Op::kNormMatMulGroup), 3);
  ASSERT_EQ(reports->size(), fusion_passes().size());
  int skipped = 0;
  for (const PassReport& r : *reports) {
    skipped += r.skipped;
    EXPECT_LE(r.nodes_after, r.nodes_before);
  }
  EXPECT_EQ(skipped, 2);
  EXPECT_EQ(calls, 2 * (static_cast<int>(reports->size()) - 2));

  auto unknown = run_passes(g, fusion_passes(), {"fuse_atention"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("'fuse_atention'"));
  EXPECT_THAT(unknown.error().message, HasSubstr("fuse_attention"));
}

TEST(Passes, EveryPassMayBeLeftOut) {
  for (const Pass& p : fusion_passes()) {
    Graph g = tiny({.n_layer = 2, .n_tokens = 4, .n_outputs = 2, .qk_norm = true, .bias = true});
    fuse(g, {p.name});
    EXPECT_FALSE(g.nodes.empty()) << p.name;
  }
}

TEST(Passes, DisabledNamesFromTheEnvironment) {
  setenv("MINFER_DISABLE_PASS", "fuse_attention, ,remove_dead", 1);
  EXPECT_EQ(disabled_passes_from_env(), (std::vector<std::string>{"fuse_attention", "remove_dead"}));
  setenv("MINFER_DISABLE_PASS", "", 1);
  EXPECT_TRUE(disabled_passes_from_env().empty());
  unsetenv("MINFER_DISABLE_PASS");
  EXPECT_TRUE(disabled_passes_from_env().empty());
}

// --- single patterns -------------------------------------------------------------------------------------------

class Patterns : public ::testing::Test {
 protected:
  Builder b;
  int32_t next = 0;
  ValueId f32(Shape s) { return b.weight(next++, "w", DType::kF32, s); }
  Graph finish(std::vector<ValueId> outputs) {
    for (ValueId v : outputs) b.mark_output(v);
    auto g = std::move(b).finish();
    EXPECT_TRUE(g.ok()) << g.error().message;
    return g.ok() ? std::move(*g) : Graph{};
  }
};

TEST_F(Patterns, NormWithTwoReadersStays) {
  const ValueId y = b.node1(Op::kRmsNorm, {}, {f32({2, 8})}, "y");
  const ValueId z = b.node1(Op::kMul, {}, {y, f32({8})}, "z");
  Graph g = finish({z, b.node1(Op::kScale, {}, {y}, "s")});
  fuse(g);
  EXPECT_EQ(op_names(g), "rms_norm mul scale");
}

TEST_F(Patterns, NormThatIsAnOutputStays) {
  const ValueId y = b.node1(Op::kRmsNorm, {}, {f32({2, 8})}, "y");
  Graph g = finish({b.node1(Op::kMul, {}, {y, f32({8})}, "z"), y});
  fuse(g);
  EXPECT_EQ(op_names(g), "rms_norm mul");
}

TEST_F(Patterns, NormTimesAnOddRowStays) {
  Attrs a;
  a.group = 4;
  const ValueId y = b.node1(Op::kRmsNorm, a, {f32({2, 8})}, "y");
  Graph g = finish({b.node1(Op::kMul, {}, {y, f32({2})}, "z")});  // repeats inside a group
  fuse(g);
  EXPECT_EQ(op_names(g), "rms_norm mul");
}

TEST_F(Patterns, GatedActInEitherOrder) {
  const ValueId act = b.node1(Op::kUnary, {}, {f32({2, 8})}, "act");
  Graph g = finish({b.node1(Op::kMul, {}, {f32({2, 8}), act}, "z")});
  fuse(g);
  EXPECT_EQ(op_names(g), "gated_act");
  EXPECT_EQ(g.nodes[0].inputs.size(), 2u);
}

TEST_F(Patterns, SquareOfAnActivationStays) {
  const ValueId act = b.node1(Op::kUnary, {}, {f32({2, 8})}, "act");
  Graph g = finish({b.node1(Op::kMul, {}, {act, act}, "z")});
  fuse(g);
  EXPECT_EQ(op_names(g), "unary mul");
}

TEST_F(Patterns, MatMulAddOrdersOfOperands) {
  const ValueId x = f32({2, 8}), r = f32({2, 4});
  const ValueId y = b.node1(Op::kMatMul, {}, {x, f32({4, 8})}, "y");
  const ValueId yb = b.node1(Op::kAdd, {}, {y, f32({4})}, "yb");
  Graph g = finish({b.node1(Op::kAdd, {}, {r, yb}, "z")});
  fuse(g);
  ASSERT_EQ(op_names(g), "matmul_add");
  EXPECT_EQ(g.value(g.nodes[0].inputs[2]).shape, (Shape{4}));
  EXPECT_EQ(g.value(g.nodes[0].inputs[3]).shape, (Shape{2, 4}));
}

TEST_F(Patterns, MatMulTwiceItselfStays) {
  const ValueId y = b.node1(Op::kMatMul, {}, {f32({2, 8}), f32({4, 8})}, "y");
  Graph g = finish({b.node1(Op::kAdd, {}, {y, y}, "z")});
  fuse(g);
  EXPECT_EQ(op_names(g), "matmul add");
}

TEST_F(Patterns, ResidualMadeBetweenMatMulAndAdd) {
  const ValueId x = f32({2, 8});
  const ValueId y = b.node1(Op::kMatMul, {}, {x, f32({8, 8})}, "y");
  const ValueId r = b.node1(Op::kScale, {}, {x}, "r");
  Graph g = finish({b.node1(Op::kAdd, {}, {y, r}, "z")});
  fuse(g);
  EXPECT_EQ(op_names(g), "scale matmul_add");
}

TEST_F(Patterns, FiveMatMulsOfOneInput) {
  const ValueId x = f32({2, 8});
  std::vector<ValueId> ys;
  for (int i = 0; i < 5; ++i) ys.push_back(b.node1(Op::kMatMul, {}, {x, f32({4 + i, 8})}, fmt::format("y{}", i)));
  Graph g = finish(ys);
  fuse(g);
  EXPECT_EQ(op_names(g), "matmul_group matmul");
  EXPECT_EQ(g.nodes[0].attrs.n_group, 4);
}

TEST_F(Patterns, ResidualMatMulsAndBiasesMadeLaterStayOutOfGroups) {
  const ValueId x = f32({2, 8}), r = f32({2, 8});
  const ValueId a = b.node1(Op::kMatMul, {}, {x, f32({8, 8})}, "a");
  const ValueId c = b.node1(Op::kAdd, {}, {b.node1(Op::kMatMul, {}, {x, f32({8, 8})}, "c"), r}, "cr");
  Graph g = finish({a, c});
  fuse(g);
  EXPECT_EQ(op_names(g), "matmul matmul_add");
}

TEST_F(Patterns, EqualNodesMergeAcrossLayersButRegionsDoNot) {
  const ValueId positions = b.input(InputKind::kPositions, {2}), freq = b.weight(77, "f", DType::kF64, {4});
  b.set_layer(0);
  const ValueId t0 = b.node1(Op::kRopeTable, {}, {positions, freq}, "t0");
  b.set_layer(1);
  const ValueId t1 = b.node1(Op::kRopeTable, {}, {positions, freq}, "t1");
  Attrs other;
  other.scale = 2;
  const ValueId t2 = b.node1(Op::kRopeTable, other, {positions, freq}, "t2");
  Graph g = finish({t0, t1, t2});
  apply(g, "merge_equal");
  EXPECT_EQ(op_names(g), "rope_table rope_table");
  EXPECT_EQ(g.outputs[0], g.outputs[1]);
}

TEST_F(Patterns, DeadNodesGoAndStoresStay) {
  Attrs store;
  store.n_head_kv = 1;
  store.head_dim = 16;
  const ValueId x = f32({2, 16});
  b.node(Op::kKvStoreK, store, {x, b.kv_region(0, false, DType::kF32, 16, 16), b.input(InputKind::kSlots, {2})}, "s");
  b.node1(Op::kScale, {}, {b.node1(Op::kScale, {}, {f32({2, 16})}, "a")}, "b");
  Graph g = finish({});
  const size_t before = g.values.size();
  fuse(g);
  EXPECT_EQ(op_names(g), "kv_store_k");
  EXPECT_EQ(g.values.size(), before - 3);
}

class RopePatterns : public Patterns {
 protected:
  Attrs store, rope;
  ValueId slots, table, region_k, region_v;
  void SetUp() override {
    store.n_head_kv = 1;
    store.head_dim = rope.head_dim = 16;
    slots = b.input(InputKind::kSlots, {2});
    table = f32({2, 16});
    region_k = b.kv_region(0, false, DType::kF32, 16, 16);
    region_v = b.kv_region(0, true, DType::kF32, 16, 16);
  }
  ValueId roped(const char* name) { return b.node1(Op::kRope, rope, {f32({2, 16}), table}, name); }
};

TEST_F(RopePatterns, KeysReadElsewhereStay) {
  const ValueId k = roped("k");
  b.node(Op::kKvStoreK, store, {k, region_k, slots}, "");
  b.node(Op::kKvStoreV, store, {f32({2, 16}), region_v, slots}, "");
  Graph g = finish({k});
  fuse(g);
  EXPECT_EQ(op_names(g), "rope kv_store_k kv_store_v");
}

TEST_F(RopePatterns, QueryReadBeforeTheStoresStaysOutside) {
  const ValueId q = roped("q");
  const ValueId s = b.node1(Op::kScale, {}, {q}, "s");
  b.node(Op::kKvStoreK, store, {roped("k"), region_k, slots}, "");
  b.node(Op::kKvStoreV, store, {f32({2, 16}), region_v, slots}, "");
  Graph g = finish({s});
  fuse(g);
  EXPECT_EQ(op_names(g), "rope scale rope_store");
}

TEST_F(RopePatterns, DifferentEpsKeepsTheQueryOutside) {
  const auto normed = [&](const char* name, float eps) {
    Attrs a;
    a.eps = eps;
    a.group = 16;
    return b.node1(Op::kRope, rope, {b.node1(Op::kRmsNormMul, a, {f32({2, 16}), f32({16})}, name), table},
                   std::string(name) + "r");
  };
  const ValueId q = normed("q", 1e-5f);
  b.node(Op::kKvStoreK, store, {normed("k", 1e-6f), region_k, slots}, "");
  b.node(Op::kKvStoreV, store, {f32({2, 16}), region_v, slots}, "");
  Graph g = finish({q});
  fuse(g);
  EXPECT_EQ(op_names(g), "rms_norm_mul rope rope_store");
  EXPECT_EQ(g.nodes[2].attrs.eps, 1e-6f);
}

TEST_F(RopePatterns, AttentionBetweenTheStoresStopsTheFusion) {
  const ValueId q = roped("q");
  b.node(Op::kKvStoreK, store, {roped("k"), region_k, slots}, "");
  Attrs a = store;
  a.n_head = 1;
  a.page_size = 16;
  a.n_kv = 256;
  const ValueId scores = b.node1(Op::kAttnScores, a,
                                 {q, region_k, b.input(InputKind::kPositions, {2}), b.input(InputKind::kSeqs, {2}),
                                  b.input(InputKind::kBlockTable, {1, 1})},
                                 "scores");
  b.node(Op::kKvStoreV, store, {f32({2, 16}), region_v, slots}, "");
  Graph g = finish({scores});
  fuse(g);
  EXPECT_EQ(op_names(g), "rope rope kv_store_k attn_scores kv_store_v");
}

TEST_F(RopePatterns, AttentionWithDifferentWindowsStays) {
  Attrs a = store;
  a.n_head = 1;
  a.page_size = 16;
  a.n_kv = 256;
  const ValueId p = b.input(InputKind::kPositions, {2}), s = b.input(InputKind::kSeqs, {2}),
                t = b.input(InputKind::kBlockTable, {1, 1});
  const ValueId scores = b.node1(Op::kAttnScores, a, {f32({2, 16}), region_k, p, s, t}, "scores");
  Attrs w;
  w.window = 7;
  const ValueId weights = b.node1(Op::kAttnSoftmax, w, {scores, p}, "weights");
  Graph g = finish({b.node1(Op::kAttnMix, a, {weights, region_v, p, s, t}, "mix")});
  fuse(g);
  EXPECT_EQ(op_names(g), "attn_scores attn_softmax attn_mix");
}

}  // namespace
}  // namespace minfer
