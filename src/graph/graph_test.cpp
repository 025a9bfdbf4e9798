// Builder, verify, DOT and JSON.
#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "graph/testing/tiny_graph.h"

namespace minfer {
namespace {

using ::testing::HasSubstr;
using testing::make_tiny_graph;
using testing::TinyGraph;

Graph tiny(const TinyGraph& t = {}) {
  auto g = make_tiny_graph(t);
  EXPECT_TRUE(g.ok()) << g.error().message;
  return g.ok() ? std::move(*g) : Graph{};
}

TEST(Builder, AsksOnceForExternals) {
  Builder b;
  EXPECT_EQ(b.input(InputKind::kTokens, {3}), b.input(InputKind::kTokens, {3}));
  EXPECT_EQ(b.weight(4, "w", DType::kF32, {8}), b.weight(4, "w", DType::kF32, {8}));
  EXPECT_NE(b.kv_region(0, false, DType::kF16, 16, 8), b.kv_region(0, true, DType::kF16, 16, 8));
  EXPECT_EQ(b.shape(b.kv_region(0, true, DType::kF16, 16, 8)), (Shape{16, 8}));
  EXPECT_FALSE(b.failed());
  b.weight(4, "w", DType::kF16, {8});
  EXPECT_TRUE(b.failed());
}

TEST(Builder, FirstErrorSticks) {
  Builder b;
  const ValueId x = b.weight(0, "x", DType::kF32, {2, 8});
  const ValueId bad = b.node1(Op::kMatMul, {}, {x, b.weight(1, "w", DType::kF32, {4, 9})}, "l0.q");
  EXPECT_EQ(bad, kNoValue);
  EXPECT_EQ(b.node(Op::kMoeRoute, {}, {bad}, "later")[1], kNoValue);  // may be indexed
  EXPECT_EQ(b.shape(bad), Shape{});
  auto g = std::move(b).finish();
  ASSERT_FALSE(g.ok());
  EXPECT_EQ(g.error().message,
            "[graph] node 'l0.q': [matmul] input 1 (w): found f32 [4, 9], expected float or block-quantized [d, 8]");
}

TEST(Builder, RefusesUnknownValuesAndAbsentInputs) {
  Builder b;
  b.node1(Op::kScale, {}, {7}, "a");
  EXPECT_THAT(std::move(b).finish().error().message, HasSubstr("value 7 does not exist"));
  Builder c;
  c.node1(Op::kScale, {}, {kNoValue}, "a");
  EXPECT_THAT(std::move(c).finish().error().message, HasSubstr("input 0 (x) is absent"));
  Builder d;
  d.node1(Op::kScale, {}, {}, "a");
  EXPECT_THAT(std::move(d).finish().error().message, HasSubstr("0 inputs, expected 1..1"));
  Builder e;
  e.mark_output(3);
  EXPECT_FALSE(std::move(e).finish().ok());
}

TEST(Builder, StampsTheLayer) {
  const Graph g = tiny({.n_layer = 2});
  EXPECT_EQ(g.nodes.front().attrs.layer, -1);
  EXPECT_EQ(g.nodes[1].attrs.layer, 0);
  EXPECT_EQ(g.nodes.back().attrs.layer, -1);
}

TEST(Builder, EmptyBatchAndNoOutputs) {
  EXPECT_TRUE(make_tiny_graph({.n_tokens = 0, .n_outputs = 0}).ok());
  EXPECT_TRUE(make_tiny_graph({.n_tokens = 4, .n_outputs = 0}).ok());
}

// Breaks a good graph in one way each.
class Broken : public ::testing::Test {
 protected:
  Graph g = tiny({.n_layer = 1});
  NodeId find(Op op) const {
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      if (g.nodes[i].op == op) return static_cast<NodeId>(i);
    }
    return -1;
  }
  Node& node(Op op) { return g.nodes[static_cast<size_t>(find(op))]; }
  Value& value(ValueId v) { return g.values[static_cast<size_t>(v)]; }
  void expect(const char* text) {
    const Status s = verify(g);
    ASSERT_FALSE(s.ok());
    EXPECT_THAT(s.error().message, HasSubstr(text));
  }
};

TEST_F(Broken, NotAtAll) { EXPECT_TRUE(verify(g).ok()); }
TEST_F(Broken, InputOutOfRange) {
  node(Op::kUnary).inputs[0] = 9999;
  expect("value 9999 does not exist");
}
TEST_F(Broken, NegativeInput) {
  node(Op::kUnary).inputs[0] = -7;
  expect("value -7 does not exist");
}
TEST_F(Broken, OutputOutOfRange) {
  node(Op::kUnary).outputs[0] = 9999;
  expect("does not exist");
}
TEST_F(Broken, UsedBeforeMade) {
  const auto n = static_cast<size_t>(find(Op::kUnary));
  std::swap(g.nodes[n], g.nodes[n + 1]);
  expect("used before it is made");
}
TEST_F(Broken, MadeTwice) {
  node(Op::kUnary).outputs = node(Op::kEmbed).outputs;
  expect("is made twice");
}
TEST_F(Broken, WrongProducer) {
  value(node(Op::kUnary).outputs[0]).producer = 0;
  expect("names producer 0");
}
TEST_F(Broken, WrongShape) {
  value(node(Op::kUnary).outputs[0]).shape = {3, 95};
  expect("the shape rule says");
}
TEST_F(Broken, WrongType) {
  value(node(Op::kUnary).outputs[0]).dtype = DType::kF16;
  expect("the shape rule says f32");
}
TEST_F(Broken, WrongNumberOfOutputs) {
  node(Op::kUnary).outputs.clear();
  expect("0 outputs, expected 1");
}
TEST_F(Broken, TooFewInputs) {
  node(Op::kMul).inputs.pop_back();
  expect("1 inputs, expected 2..2");
}
TEST_F(Broken, TooManyInputs) {
  node(Op::kMul).inputs.resize(20, 0);
  expect("20 inputs");
}
TEST_F(Broken, AbsentWhereNeeded) {
  node(Op::kMul).inputs[1] = kNoValue;
  expect("is absent");
}
TEST_F(Broken, OutputToExternal) {
  node(Op::kUnary).outputs[0] = node(Op::kMatMul).inputs[1];
  expect("is an external value");
}
TEST_F(Broken, OutputNeverMade) {
  g.nodes.pop_back();
  expect("is never made");
}
TEST_F(Broken, OutputMissing) {
  g.outputs = {-1};
  expect("does not exist");
}
TEST_F(Broken, RegionAsTensor) {
  node(Op::kUnary).inputs[0] = node(Op::kKvStoreK).inputs[1];
  expect("a KV region, expected a tensor");
}
TEST_F(Broken, TensorAsRegion) {
  node(Op::kKvStoreK).inputs[1] = node(Op::kKvStoreK).inputs[0];
  expect("expected a KV region");
}
TEST_F(Broken, VRegionForK) {
  node(Op::kKvStoreK).inputs[1] = node(Op::kKvStoreV).inputs[1];
  expect("expected a K region");
}
TEST_F(Broken, StoreAfterRead) {
  g.nodes.push_back(node(Op::kKvStoreK));
  expect("after it was read");
}
TEST_F(Broken, ExternalTwice) {
  g.values.push_back(value(node(Op::kMatMul).inputs[1]));
  expect("is there twice");
}
TEST_F(Broken, UnknownOp) {
  node(Op::kUnary).op = static_cast<Op>(200);
  expect("no op 200");
}
TEST_F(Broken, BadAttribute) {
  node(Op::kRope).attrs.head_dim = 7;
  expect("head_dim 7");
}

TEST(Export, JsonParsesAndIsComplete) {
  Graph g = tiny({.n_layer = 1, .bias = true});
  g.values[0].name = "odd \"name\"\n\\";
  const auto j = nlohmann::json::parse(to_json(g));
  EXPECT_EQ(j["values"].size(), g.values.size());
  EXPECT_EQ(j["nodes"].size(), g.nodes.size());
  EXPECT_EQ(j["values"][0]["name"], g.values[0].name);
  EXPECT_EQ(j["outputs"][0], g.outputs[0]);
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    EXPECT_EQ(j["nodes"][i]["op"], op_info(g.nodes[i].op).name);
    EXPECT_EQ(j["nodes"][i]["inputs"].size(), g.nodes[i].inputs.size());
  }
  Graph none;
  EXPECT_EQ(nlohmann::json::parse(to_json(none))["nodes"].size(), 0u);
}

TEST(Export, DotNamesEveryNode) {
  const Graph g = tiny({.n_layer = 1});
  const std::string dot = to_dot(g);
  for (size_t i = 0; i < g.nodes.size(); ++i)
    EXPECT_THAT(dot, HasSubstr(fmt::format("n{} [label=\"{}", i, op_info(g.nodes[i].op).name)));
  EXPECT_THAT(dot, HasSubstr("l0.kv_k"));
  EXPECT_THAT(dot, HasSubstr("-> out0"));
}

}  // namespace
}  // namespace minfer
