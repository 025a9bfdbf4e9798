// node_cost: bytes moved and arithmetic of every op, for traces and rooflines.
// Bytes: each input and output once, weights in their stored form; a table of which rows are picked counts those rows.
// Flops: 2 per multiply-add, 1 per other operation; an exp counts 10 (its polynomial), an activation 12.
#include <algorithm>

#include "backend/kernel.h"

namespace minfer {

namespace {

constexpr double kExpFlops = 10, kActFlops = 12, kNormFlops = 4;  // of a normalised value, its gain included

double bytes_of(const TensorView& v) {
  return static_cast<double>(v.shape.rows()) * static_cast<double>(dtype_row_bytes(v.dtype, v.shape.last()));
}

double count_of(const TensorView& v) { return static_cast<double>(v.shape.count()); }

// Rows of a KV region that the tokens see in all, and how many bytes a kernel has to read of each. Where the positions
// are not known yet (a plan is made before its inputs are filled) every token counts as the last of the n_kv positions.
struct Seen {
  double pairs = 0;  // (token, position)
  double rows = 0;   // positions, each sequence once: tokens of a sequence read the same rows
};

Seen seen_positions(const Attrs& attrs, int64_t n_kv, const TensorView& positions, const TensorView& seqs,
                    int64_t n_seq) {
  const int64_t n = positions.shape.count();
  Seen seen;
  const auto window = [&](int64_t p) {
    return static_cast<double>(attrs.window > 0 ? std::min<int64_t>(p + 1, attrs.window) : p + 1);
  };
  if (positions.data == nullptr || seqs.data == nullptr) {
    const double per_token = window(n_kv - 1);
    return {per_token * static_cast<double>(n), per_token * static_cast<double>(std::min(n, n_seq))};
  }
  const int32_t *p = positions.as<int32_t>(), *s = seqs.as<int32_t>();
  for (int64_t t = 0; t < n; ++t) {
    const double here = window(std::max(p[t], 0));
    seen.pairs += here;
    const bool last_of_run = t + 1 == n || s[t + 1] != s[t];
    if (last_of_run) seen.rows += here;
  }
  return seen;
}

// Matmuls of n rows of x with one weight.
double matmul_flops(double n, const TensorView& w) {
  return 2 * n * static_cast<double>(w.shape[w.shape.rank - 2] * w.shape.last());
}

}  // namespace

Cost node_cost(const NodeDesc& node) {
  const Attrs& a = node.attrs;
  const auto in = [&](size_t i) -> const TensorView& { return node.in[i]; };
  const auto has = [&](size_t i) { return i < node.in.size() && node.present[i]; };
  const auto rows = [&](size_t i) { return static_cast<double>(in(i).shape.rows()); };
  Cost cost;
  for (const TensorView& v : node.out) cost.bytes += bytes_of(v);
  // Every input once, but for what the cases below pick out of a table or a region.
  const auto add_inputs = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < std::min(end, node.in.size()); ++i) {
      if (has(i)) cost.bytes += bytes_of(in(i));
    }
  };
  const auto region_bytes = [&](size_t i, double n_rows) {
    return n_rows * static_cast<double>(dtype_row_bytes(in(i).dtype, in(i).shape.last()));
  };
  const double out = node.out.empty() ? 0.0 : count_of(node.out[0]);
  switch (node.op) {
    case Op::kEmbed:
    case Op::kGetRows: {
      const size_t table = node.op == Op::kEmbed ? 1 : 0, picks = 1 - table;
      cost.bytes += bytes_of(in(picks)) +
                    count_of(in(picks)) * static_cast<double>(dtype_row_bytes(in(table).dtype, in(table).shape.last()));
      break;
    }
    case Op::kMatMul:
      add_inputs(0, 2);
      cost.flops = matmul_flops(rows(0), in(1));
      break;
    case Op::kMatMulAdd:
      add_inputs(0, 4);
      cost.flops = matmul_flops(rows(0), in(1)) + out * ((has(2) ? 1 : 0) + (has(3) ? 1 : 0));
      break;
    case Op::kMatMulGroup:
    case Op::kNormMatMulGroup: {
      add_inputs(0, node.in.size());
      const bool norm = node.op == Op::kNormMatMulGroup;
      if (norm) cost.flops = count_of(in(0)) * kNormFlops;
      const size_t first = norm ? 2 : 1, end = std::min(first + static_cast<size_t>(a.n_group), node.in.size());
      for (size_t i = first; i < end; ++i) cost.flops += matmul_flops(rows(0), in(i));
      break;
    }
    case Op::kMoeMatMul: {
      const double picks = count_of(in(2));
      const double experts = std::min(picks, static_cast<double>(in(1).shape[0]));  // at most so many are read
      cost.bytes += bytes_of(in(0)) + bytes_of(in(2)) +
                    bytes_of(in(1)) / static_cast<double>(std::max<int64_t>(1, in(1).shape[0])) * experts;
      cost.flops = matmul_flops(picks, in(1));
      break;
    }
    case Op::kAdd:
    case Op::kMul:
    case Op::kScale:
      add_inputs(0, 2);
      cost.flops = out;
      break;
    case Op::kUnary:
      add_inputs(0, 1);
      cost.flops = out * kActFlops;
      break;
    case Op::kSoftcap:
    case Op::kGatedAct:
      add_inputs(0, 2);
      cost.flops = out * (kActFlops + 1);
      break;
    case Op::kRmsNorm:
      add_inputs(0, 1);
      cost.flops = out * 3;
      break;
    case Op::kRmsNormMul:
      add_inputs(0, 2);
      cost.flops = out * kNormFlops;
      break;
    case Op::kRopeTable:
      add_inputs(0, 2);
      cost.flops = out * 2 * kExpFlops;  // half a sincos each
      break;
    case Op::kRope:
      add_inputs(0, 2);
      cost.flops = out * 3;
      break;
    case Op::kKvStoreK:
    case Op::kKvStoreV: cost.bytes += bytes_of(in(0)) + bytes_of(in(2)) + region_bytes(1, rows(0)); break;
    case Op::kRopeStore:
      add_inputs(0, 6);
      cost.bytes += bytes_of(in(8)) + region_bytes(6, rows(1)) + region_bytes(7, rows(1));
      cost.flops = (out + count_of(in(1))) * 3 + (has(3) ? out * 4 : 0) + (has(4) ? count_of(in(1)) * 4 : 0);
      break;
    case Op::kAttnScores: {
      const Seen seen = seen_positions(a, a.n_kv, in(2), in(3), in(4).shape[0]);
      cost.bytes += bytes_of(in(0)) + region_bytes(1, seen.rows);
      cost.flops = seen.pairs * a.n_head * (2.0 * a.head_dim + 1);
      break;
    }
    case Op::kAttnSoftmax:
      add_inputs(0, 2);
      cost.flops = count_of(in(0)) * (kExpFlops + 3);
      break;
    case Op::kAttnMix: {
      const int64_t n_kv = in(0).shape.last() / 258 * 256;  // weights, then two numbers per tile of 256
      const Seen seen = seen_positions(a, n_kv, in(2), in(3), in(4).shape[0]);
      cost.bytes += bytes_of(in(0)) + region_bytes(1, seen.rows);
      cost.flops = seen.pairs * a.n_head * 2.0 * a.head_dim;
      break;
    }
    case Op::kAttention: {
      const Seen seen = seen_positions(a, a.n_kv, in(3), in(4), in(5).shape[0]);
      cost.bytes += bytes_of(in(0)) + region_bytes(1, seen.rows) + region_bytes(2, seen.rows);
      cost.flops = seen.pairs * a.n_head * (4.0 * a.head_dim + kExpFlops + 4);
      break;
    }
    case Op::kMoeRoute:
      add_inputs(0, 1);
      cost.flops = count_of(in(0)) * (kExpFlops + 3);
      break;
    case Op::kMoeCombine:
      add_inputs(0, 2);
      cost.flops = 2 * count_of(in(0));
      break;
  }
  return cost;
}

}  // namespace minfer
