// The op table: names in order, and what every shape rule accepts and refuses.
#include "graph/op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "graph/ops/decompose.h"

namespace minfer {
namespace {

using ::testing::HasSubstr;

constexpr DType kF = DType::kF32, kI = DType::kI32;
const ValueDesc kAbsent{DType::kF32, {}, true};
ValueDesc f(Shape s) { return {kF, s, false}; }
ValueDesc i(Shape s) { return {kI, s, false}; }
ValueDesc of(DType t, Shape s) { return {t, s, false}; }

struct Case {
  Op op;
  Attrs attrs;
  std::vector<ValueDesc> in;
  std::vector<ValueDesc> out;
};

Attrs attn() {
  Attrs a;
  a.n_head = 4;
  a.n_head_kv = 2;
  a.head_dim = 32;
  a.page_size = 16;
  a.n_kv = 512;
  return a;
}

template <typename Fn>
Attrs with(Attrs a, Fn fn) {
  fn(a);
  return a;
}

const ValueDesc kRegion = of(DType::kQ8_0, {48, 64});

// One accepted use of every op, n = 3.
std::vector<Case> good_cases() {
  const Attrs none, a = attn();
  const ValueDesc p = i({3}), table = i({2, 4});
  return {
      {Op::kEmbed, none, {i({3}), of(DType::kQ4_K, {40, 256})}, {f({3, 256})}},
      {Op::kGetRows, none, {f({5, 7}), i({3})}, {f({3, 7})}},
      {Op::kMatMul, none, {f({3, 64}), of(DType::kQ4_0, {5, 64})}, {f({3, 5})}},
      {Op::kAdd, none, {f({3, 7}), f({7})}, {f({3, 7})}},
      {Op::kMul, none, {f({3, 8}), f({4})}, {f({3, 8})}},
      {Op::kScale, none, {f({3, 8})}, {f({3, 8})}},
      {Op::kRmsNorm, with(none, [](Attrs& x) { x.group = 4; }), {f({3, 8})}, {f({3, 8})}},
      {Op::kUnary, none, {f({3, 2, 8})}, {f({3, 2, 8})}},
      {Op::kSoftcap, with(none, [](Attrs& x) { x.softcap = 30; }), {f({3, 8})}, {f({3, 8})}},
      {Op::kRopeTable, none, {p, of(DType::kF64, {8})}, {f({3, 16})}},
      {Op::kRope, a, {f({3, 64}), f({3, 16})}, {f({3, 64})}},
      {Op::kKvStoreK, a, {f({3, 64}), kRegion, p}, {}},
      {Op::kKvStoreV, a, {f({3, 64}), kRegion, p}, {}},
      {Op::kAttnScores, a, {f({3, 128}), kRegion, p, p, table}, {f({3, 4, 512})}},
      {Op::kAttnSoftmax, none, {f({3, 4, 512}), p}, {f({3, 4, 516})}},
      {Op::kAttnMix, a, {f({3, 4, 516}), kRegion, p, p, table}, {f({3, 128})}},
      {Op::kMoeRoute, with(none, [](Attrs& x) { x.top_k = 2; }), {f({3, 8})}, {i({3, 2}), f({3, 2})}},
      {Op::kMoeMatMul,
       with(none, [](Attrs& x) { x.top_k = 2; }),
       {f({3, 32}), of(DType::kQ8_0, {8, 5, 32}), i({3, 2})},
       {f({3, 2, 5})}},
      {Op::kMoeCombine, with(none, [](Attrs& x) { x.top_k = 2; }), {f({3, 2, 7}), f({3, 2})}, {f({3, 7})}},
      {Op::kRmsNormMul, none, {f({3, 8}), f({8})}, {f({3, 8})}},
      {Op::kMatMulGroup,
       with(none, [](Attrs& x) { x.n_group = 2; }),
       {f({3, 32}), of(DType::kQ8_0, {5, 32}), f({6, 32}), kAbsent, f({6})},
       {f({3, 5}), f({3, 6})}},
      {Op::kMatMulAdd, none, {f({3, 32}), f({5, 32}), f({5}), f({3, 5})}, {f({3, 5})}},
      {Op::kGatedAct, none, {f({3, 8}), f({3, 8})}, {f({3, 8})}},
      {Op::kRopeStore,
       a,
       {f({3, 128}), f({3, 64}), f({3, 64}), f({32}), kAbsent, f({3, 32}), kRegion, kRegion, p},
       {f({3, 128})}},
      {Op::kAttention, a, {f({3, 128}), kRegion, kRegion, p, p, table}, {f({3, 128})}},
      {Op::kNormMatMulGroup,
       with(none, [](Attrs& x) { x.n_group = 2; }),
       {f({3, 32}), f({32}), of(DType::kQ8_0, {5, 32}), f({6, 32}), kAbsent, f({6})},
       {f({3, 5}), f({3, 6})}},
  };
}

std::string text(const std::vector<ValueDesc>& d) {
  std::string s;
  for (const ValueDesc& v : d) s += std::string(dtype_info(v.dtype).name) + v.shape.str() + " ";
  return s;
}

TEST(OpTable, NamesAreDistinctAndEveryOpHasAGoodCase) {
  std::set<std::string> names;
  for (int op = 0; op < kOpCount; ++op) names.insert(op_info(static_cast<Op>(op)).name);
  EXPECT_EQ(names.size(), static_cast<size_t>(kOpCount));
  const auto cases = good_cases();
  ASSERT_EQ(cases.size(), static_cast<size_t>(kOpCount));
  for (int op = 0; op < kOpCount; ++op) EXPECT_EQ(static_cast<int>(cases[static_cast<size_t>(op)].op), op);
  EXPECT_STREQ(op_info(Op::kEmbed).name, "embed");
  EXPECT_STREQ(op_info(Op::kMoeCombine).name, "moe_combine");
  EXPECT_STREQ(op_info(Op::kRmsNormMul).name, "rms_norm_mul");
  EXPECT_STREQ(op_info(Op::kAttention).name, "attention");
}

TEST(OpTable, CompositesAndOnlyTheyHaveDefinitions) {
  for (int op = 0; op < kOpCount; ++op) {
    EXPECT_EQ(op_info(static_cast<Op>(op)).composite, find_definition(static_cast<Op>(op)) != nullptr);
  }
}

TEST(ShapeRules, AcceptGoodCases) {
  for (const Case& c : good_cases()) {
    const auto out = infer_outputs(c.op, c.attrs, c.in);
    ASSERT_TRUE(out.ok()) << out.error().message;
    EXPECT_EQ(text(*out), text(c.out)) << op_info(c.op).name;
  }
}

// Whatever single input is taken away, retyped or reshaped, the rule says so and does not crash.
TEST(ShapeRules, RefuseEveryDamagedInput) {
  const auto expect_refused = [](const Case& c, const std::string& what) {
    const auto out = infer_outputs(c.op, c.attrs, c.in);
    EXPECT_FALSE(out.ok()) << op_text(c.op, c.in) << ": " << what;
    if (!out.ok()) {
      EXPECT_THAT(out.error().message, HasSubstr(fmt::format("[{}]", op_info(c.op).name)));
    }
  };
  for (const Case& good : good_cases()) {
    for (size_t n = 0; n < good.in.size(); ++n) {
      if (good.in[n].absent) continue;
      Case c = good;
      // inputs that may be absent: q_norm, biases, the residual
      const bool optional = (c.op == Op::kMatMulGroup && n >= 3) || (c.op == Op::kNormMatMulGroup && n >= 4) ||
                            (c.op == Op::kMatMulAdd && n >= 2) || (c.op == Op::kRopeStore && n == 3);
      c.in[n] = kAbsent;
      if (!optional) expect_refused(c, fmt::format("input {} absent", n));
      c.in[n] = of(DType::kI64, good.in[n].shape);
      expect_refused(c, fmt::format("input {} of type i64", n));
      c.in[n] = good.in[n];
      c.in[n].shape = {};
      expect_refused(c, fmt::format("input {} of rank 0", n));
      c.in[n].shape = {3, 3, 3, 3};
      const bool any_rank =
          op_info(c.op).max_inputs == 1 && (c.op == Op::kScale || c.op == Op::kUnary || c.op == Op::kSoftcap);
      if (!any_rank) expect_refused(c, fmt::format("input {} of rank 4", n));
      c.in[n].shape = good.in[n].shape;
      c.in[n].shape.dims[static_cast<size_t>(c.in[n].shape.rank - 1)] = 0;
      // zero tokens are fine where the last dimension counts tokens
      const bool counts_tokens = good.in[n].shape.rank == 1 && good.in[n].dtype == kI && good.in.size() > 1 &&
                                 (c.op == Op::kEmbed || c.op == Op::kGetRows || c.op == Op::kRopeTable);
      if (!counts_tokens) expect_refused(c, fmt::format("input {} with a last dimension of 0", n));
    }
    Case few = good;
    few.in.pop_back();
    expect_refused(few, "an input too few");
    Case many = good;
    many.in.resize(kMaxInputs, good.in[0]);
    expect_refused(many, "too many inputs");
    const auto none = op_info(good.op).infer(good.attrs, {});  // called past the count, the rule itself still refuses
    EXPECT_FALSE(none.ok());
  }
}

TEST(ShapeRules, EmptyBatch) {
  EXPECT_TRUE(infer_outputs(Op::kMatMul, {}, {f({0, 64}), of(DType::kQ4_0, {5, 64})}).ok());
  EXPECT_TRUE(infer_outputs(Op::kAttention, attn(), {f({0, 128}), kRegion, kRegion, i({0}), i({0}), i({1, 4})}).ok());
  EXPECT_TRUE(infer_outputs(Op::kEmbed, {}, {i({0}), f({4, 4})}).ok());
}

struct Bad {
  Op op;
  Attrs attrs;
  std::vector<ValueDesc> in;
  const char* message;
};

TEST(ShapeRules, SayWhatIsWrong) {
  const Attrs none, a = attn();
  const ValueDesc p = i({3}), table = i({2, 4}), q = f({3, 128});
  const auto group = [&](int32_t g) { return with(none, [g](Attrs& x) { x.group = g; }); };
  const auto top_k = [&](int32_t k) { return with(none, [k](Attrs& x) { x.top_k = k; }); };
  const auto attend = [&](auto fn, ValueDesc region = kRegion) {
    return Bad{Op::kAttention, with(a, fn), {q, region, region, p, p, table}, ""};
  };
  std::vector<Bad> cases = {
      {Op::kMatMul, none, {f({3, 48}), of(DType::kQ4_0, {5, 48})}, "rows of whole blocks of 32"},
      {Op::kMatMul, none, {f({3, 64}), of(DType::kQ4_0, {5, 32})}, "expected float or block-quantized [d, 64]"},
      {Op::kMatMul, none, {f({3, 64}), of(DType::kI8, {5, 64})}, "found i8 [5, 64]"},
      {Op::kAdd, none, {f({3, 7}), f({6})}, "expected f32 [7]"},
      {Op::kAdd, none, {f({3, 7}), f({1, 7})}, "found [1, 7], expected [3, 7]"},
      {Op::kMul, none, {f({3, 8}), f({3})}, "3 values do not divide the row of 8"},
      {Op::kRmsNorm, group(3), {f({3, 8})}, "group 3"},
      {Op::kRmsNorm, group(-4), {f({3, 8})}, "group -4"},
      {Op::kRmsNorm, with(none, [](Attrs& x) { x.eps = -1; }), {f({3, 8})}, "eps -1"},
      {Op::kRmsNorm, with(none, [](Attrs& x) { x.eps = NAN; }), {f({3, 8})}, "eps nan"},
      {Op::kRmsNormMul, group(4), {f({3, 8}), f({2})}, "expected f32 [8]"},
      {Op::kScale, with(none, [](Attrs& x) { x.scale = INFINITY; }), {f({3, 8})}, "scale inf"},
      {Op::kSoftcap, none, {f({3, 8})}, "softcap 0"},
      {Op::kRope, with(a, [](Attrs& x) { x.head_dim = 0; }), {f({3, 64}), f({3, 16})}, "head_dim 0"},
      {Op::kRope, a, {f({3, 64}), f({3, 34})}, "n_rot 34"},
      {Op::kRope, a, {f({3, 64}), f({3, 15})}, "n_rot 15"},
      {Op::kRope, a, {f({3, 64}), f({2, 16})}, "expected f32 [3, d]"},
      {Op::kKvStoreK, a, {f({3, 32}), kRegion, p}, "expected f32 [n, 64]"},
      {Op::kKvStoreK, a, {f({3, 64}), of(DType::kF16, {40, 64}), p}, "a multiple of 16 slots"},
      {Op::kKvStoreK, a, {f({3, 64}), of(DType::kQ4_0, {48, 64}), p}, "expected f32, f16, bf16 or q8_0"},
      {Op::kKvStoreK,
       with(a, [](Attrs& x) { x.head_dim = 16, x.n_head_kv = 4; }),
       {f({3, 64}), kRegion, p},
       "a q8_0 region needs"},
      {Op::kKvStoreV, a, {f({3, 64}), kRegion, i({2})}, "expected i32 [3]"},
      {Op::kAttnSoftmax, none, {f({3, 4, 300}), p}, "n_kv 300"},
      {Op::kAttnSoftmax, with(none, [](Attrs& x) { x.window = -1; }), {f({3, 4, 512}), p}, "window -1"},
      {Op::kAttnMix, a, {f({3, 4, 512}), kRegion, p, p, table}, "rows of 512"},
      {Op::kMoeRoute, top_k(9), {f({3, 8})}, "top_k 9 must be 1..8"},
      {Op::kMoeRoute, top_k(0), {f({3, 8})}, "top_k 0"},
      {Op::kMoeMatMul, top_k(3), {f({3, 32}), of(DType::kQ8_0, {8, 5, 32}), i({3, 2})}, "top_k 3"},
      {Op::kMoeMatMul, top_k(2), {f({3, 3, 32}), of(DType::kQ8_0, {8, 5, 32}), i({3, 2})}, "expected f32 [3, 2, d]"},
      {Op::kMoeCombine, top_k(2), {f({3, 2, 7}), f({3, 3})}, "expected f32 [3, 2]"},
      {Op::kMatMulGroup, none, {f({3, 32}), f({5, 32}), f({6, 32})}, "n_group 0"},
      {Op::kMatMulGroup,
       with(none, [](Attrs& x) { x.n_group = 2; }),
       {f({3, 32}), f({5, 32}), f({6, 32})},
       "3 inputs, expected 5"},
      {Op::kMatMulGroup,
       with(none, [](Attrs& x) { x.n_group = 2; }),
       {f({3, 32}), f({5, 32}), f({6, 32}), f({6}), kAbsent},
       "expected f32 [5]"},
      {Op::kNormMatMulGroup,
       with(none, [](Attrs& x) { x.n_group = 1; }),
       {f({3, 32}), f({31}), f({5, 32}), kAbsent},
       "expected f32 [32]"},
      {Op::kMatMulAdd, none, {f({3, 32}), f({5, 32}), kAbsent, f({5})}, "input 3 (residual)"},
      {Op::kGatedAct, none, {f({3, 8}), f({8, 3})}, "found [8, 3], expected [3, 8]"},
      {Op::kRopeStore,
       a,
       {kAbsent, f({3, 64}), f({3, 64}), f({32}), kAbsent, f({3, 32}), kRegion, kRegion, p},
       "q_norm without q"},
      {Op::kRopeStore,
       a,
       {f({2, 128}), f({3, 64}), f({3, 64}), kAbsent, kAbsent, f({3, 32}), kRegion, kRegion, p},
       "expected f32 [3, 128]"},
  };
  const auto add = [&](Bad b, const char* message) {
    b.message = message;
    cases.push_back(b);
  };
  add(attend([](Attrs& x) { x.n_head = 3; }), "n_head 3 must be a positive multiple of n_head_kv 2");
  add(attend([](Attrs& x) { x.n_head_kv = 0; }), "n_head_kv 0");
  add(attend([](Attrs& x) { x.page_size = 8; }), "page_size 8");
  add(attend([](Attrs& x) { x.page_size = 0; }), "page_size 0");
  add(attend([](Attrs& x) { x.window = -2; }), "window -2");
  add(attend([](Attrs& x) { x.n_kv = 100; }), "n_kv 100");
  add(attend([](Attrs& x) { x.softcap = -1; }), "softcap -1");
  add(attend([](Attrs& x) { x.scale = NAN; }), "scale nan");
  add(attend([](Attrs&) {}, of(DType::kF16, {48, 32})), "expected f32, f16, bf16 or q8_0 [d, 64]");
  for (const Bad& c : cases) {
    const auto out = infer_outputs(c.op, c.attrs, c.in);
    ASSERT_FALSE(out.ok()) << op_text(c.op, c.in) << " " << c.message;
    EXPECT_THAT(out.error().message, HasSubstr(c.message));
    EXPECT_EQ(out.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ShapeRules, HugeOutputsAreRefused) {
  const int64_t big = int64_t{1} << 40;
  const auto out = infer_outputs(Op::kMatMul, {}, {f({big, 1}), f({big, 1})});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.error().message, HasSubstr("too large"));
}

TEST(OpText, NamesTypesAndAbsence) {
  EXPECT_EQ(op_text(Op::kMatMulAdd, {f({3, 32}), of(DType::kQ8_0, {5, 32}), kAbsent, f({3, 5})}),
            "[matmul_add] [3, 32] q8_0 [5, 32] - [3, 5]");
}

}  // namespace
}  // namespace minfer
