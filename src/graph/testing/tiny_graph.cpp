// The decoder graph of tests.
#include "graph/testing/tiny_graph.h"

namespace minfer::testing {
namespace {

class Maker {
 public:
  explicit Maker(const TinyGraph& t) : t_(t) {}

  Result<Graph> run() {
    ValueId x =
        b_.node1(Op::kEmbed, {},
                 {b_.input(InputKind::kTokens, {t_.n_tokens}), weight("token_embd", {t_.n_vocab, t_.n_embd})}, "embed");
    for (int32_t l = 0; l < t_.n_layer; ++l) {
      b_.set_layer(l);
      x = attention(l, x);
      x = mlp(x);
    }
    b_.set_layer(-1);
    x = norm(x, t_.n_embd, 0, "output_norm");
    b_.mark_output(matmul(x, t_.n_vocab, "logits"));
    return std::move(b_).finish();
  }

 private:
  ValueId weight(const std::string& name, Shape shape, DType t = DType::kF32) {
    return b_.weight(n_weights_++, fmt::format("l{}.{}", b_.layer(), name), t, shape);
  }
  ValueId matmul(ValueId x, int64_t m, const std::string& name) {
    return b_.node1(Op::kMatMul, {}, {x, weight(name + ".w", {m, b_.shape(x).last()}, DType::kQ8_0)}, name);
  }
  ValueId linear(ValueId x, int64_t m, const std::string& name) {
    const ValueId y = matmul(x, m, name);
    return t_.bias ? b_.node1(Op::kAdd, {}, {y, weight(name + ".b", {m})}, name + "_bias") : y;
  }
  ValueId norm(ValueId x, int64_t width, int32_t group, const std::string& name) {
    Attrs a;
    a.eps = 1e-6f;
    a.group = group;
    const ValueId y = b_.node1(Op::kRmsNorm, a, {x}, name + "_rms");
    return b_.node1(Op::kMul, {}, {y, weight(name, {width})}, name);
  }
  ValueId table(ValueId positions) { return b_.node1(Op::kRopeTable, {}, {positions, inv_freq()}, "table"); }
  ValueId inv_freq() { return b_.weight(1000000, "inv_freq", DType::kF64, {t_.head_dim / 2}); }
  ValueId rope(ValueId x, ValueId table, const std::string& name) {
    Attrs a;
    a.head_dim = t_.head_dim;
    return b_.node1(Op::kRope, a, {x, table}, name);
  }

  ValueId attention(int32_t l, ValueId x) {
    const bool prune = l + 1 == t_.n_layer && t_.n_outputs < t_.n_tokens;
    const int64_t n = t_.n_tokens, m = t_.n_outputs, d = t_.head_dim, kv_width = int64_t{t_.n_head_kv} * d;
    const ValueId positions = b_.input(InputKind::kPositions, {n});
    const ValueId xn = norm(x, t_.n_embd, 0, "attn_norm");
    ValueId xq = xn, q_positions = positions, q_seqs = kNoValue;
    if (prune) {
      const ValueId rows = b_.input(InputKind::kOutRows, {m});
      xq = b_.node1(Op::kGetRows, {}, {xn, rows}, "xq");
      x = b_.node1(Op::kGetRows, {}, {x, rows}, "x_rows");
      q_positions = b_.input(InputKind::kOutPositions, {m});
      q_seqs = b_.input(InputKind::kOutSeqs, {m});
    } else {
      q_seqs = b_.input(InputKind::kSeqs, {n});
    }
    ValueId q = linear(xq, int64_t{t_.n_head} * d, "q"), k = linear(xn, kv_width, "k");
    const ValueId v = linear(xn, kv_width, "v");
    if (t_.qk_norm) {
      q = norm(q, d, t_.head_dim, "q_norm");
      k = norm(k, d, t_.head_dim, "k_norm");
    }
    const ValueId angles = table(positions);
    q = rope(q, prune ? table(q_positions) : angles, "q_rope");
    k = rope(k, angles, "k_rope");
    const ValueId region_k = b_.kv_region(l, false, t_.type_kv, 64, kv_width),
                  region_v = b_.kv_region(l, true, t_.type_kv, 64, kv_width);
    const ValueId slots = b_.input(InputKind::kSlots, {n});
    Attrs store;
    store.n_head_kv = t_.n_head_kv;
    store.head_dim = t_.head_dim;
    b_.node(Op::kKvStoreK, store, {k, region_k, slots}, "k_store");
    b_.node(Op::kKvStoreV, store, {v, region_v, slots}, "v_store");
    Attrs a = store;
    a.n_head = t_.n_head;
    a.scale = 0.25f;
    a.page_size = 16;
    a.n_kv = 256;
    const ValueId pages = b_.input(InputKind::kBlockTable, {1, 4});
    const ValueId scores = b_.node1(Op::kAttnScores, a, {q, region_k, q_positions, q_seqs, pages}, "scores");
    const ValueId weights = b_.node1(Op::kAttnSoftmax, a, {scores, q_positions}, "weights");
    const ValueId mix = b_.node1(Op::kAttnMix, a, {weights, region_v, q_positions, q_seqs, pages}, "attn");
    return b_.node1(Op::kAdd, {}, {matmul(mix, t_.n_embd, "o"), x}, "attn_residual");
  }

  ValueId mlp(ValueId x) {
    const ValueId xn = norm(x, t_.n_embd, 0, "ffn_norm");
    const ValueId gate = matmul(xn, t_.n_ff, "gate"), up = matmul(xn, t_.n_ff, "up");
    const ValueId act = b_.node1(Op::kUnary, {}, {gate}, "act");
    const ValueId gated = b_.node1(Op::kMul, {}, {act, up}, "gated");
    return b_.node1(Op::kAdd, {}, {matmul(gated, t_.n_embd, "down"), x}, "ffn_residual");
  }

  TinyGraph t_;
  Builder b_;
  int32_t n_weights_ = 0;
};

}  // namespace

Result<Graph> make_tiny_graph(const TinyGraph& t) { return Maker(t).run(); }

std::string op_names(const Graph& graph) {
  std::string s;
  for (const Node& node : graph.nodes) s += std::string(s.empty() ? "" : " ") + op_info(node.op).name;
  return s;
}

int count_ops(const Graph& graph, Op op) {
  int n = 0;
  for (const Node& node : graph.nodes) n += node.op == op;
  return n;
}

}  // namespace minfer::testing
