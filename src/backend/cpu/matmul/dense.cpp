#include "backend/cpu/matmul/dense.h"

#include <algorithm>

#include "backend/cpu/matmul/tiling.h"

namespace minfer::cpu {
namespace {

// Below this many values every worker makes the activations on its own instead of meeting the others at a barrier:
// a block of 32 takes about 8 ns, a barrier 1 to 3 us.
constexpr int64_t kRedundantValues = 8192;

// Bytes of weights handed out at once when weights are streamed: at 15 GB/s about 4 us against 0.1 us for the hand-out.
constexpr int64_t kStreamBytes = 64 << 10;

// Share of a worker's run of weights that others may take: 1 / kStreamTail.
constexpr int64_t kStreamTail = 8;

// Row groups handed out at once when there are many tokens; 64 rows times 512 tokens of k = 1024 take about 0.2 ms.
constexpr int64_t kPrefillGroups = 4;

// Tokens worked on together at most: their activations of one segment (40 of 60 bytes per 32 values are read) and a row
// group's weights stay in a 1 MiB L2 cache; with 384 the measured speed drops by 5 %. A multiple of every tile width.
constexpr int64_t kTokenBlock = 288;
constexpr int64_t kTokenStep = 48;  // least common multiple of the widest tiles (4, 6, 12, 16)

// Equal blocks of at most kTokenBlock tokens.
int64_t token_block(int64_t n) {
  const int64_t blocks = (n + kTokenBlock - 1) / kTokenBlock;
  return ((n + blocks - 1) / blocks + kTokenStep - 1) / kTokenStep * kTokenStep;
}

struct Plan {
  int64_t n, k;
  bool any_q = false, any_f = false;
  bool redundant;
  int64_t q8, f32, unpack, norm;  // bytes: of each form (one copy), and per worker

  Plan(const MatmulKernels& kernels, Op op, std::span<const TensorView> weights, int64_t n_, int64_t k_)
      : n(n_), k(k_) {
    for (const TensorView& w : weights) (packed_is_float(packed_format(w.dtype)) ? any_f : any_q) = true;
    redundant = n * k <= kRedundantValues;
    q8 = any_q ? q8_bytes(kernels, n, k) : 0;
    f32 = any_f && n > 1 ? f32_bytes(kernels, n, k) : 0;  // one row is its own float form
    unpack = unpack_bytes(kernels);
    norm = op == Op::kNormMatMulGroup ? (std::min<int64_t>(n, kMaxTile) * k * 4 + 63) / 64 * 64 : 0;
  }
  int64_t bytes(int n_threads) const { return (redundant ? n_threads : 1) * (q8 + f32) + n_threads * (unpack + norm); }
};

// The node's weights: inputs first_weight .. first_weight + weight_count - 1; in groups the biases follow.
int first_weight(Op op) { return op == Op::kNormMatMulGroup ? 2 : 1; }
bool is_group(Op op) { return op == Op::kMatMulGroup || op == Op::kNormMatMulGroup; }
int weight_count(Op op, const Attrs& attrs) { return is_group(op) ? attrs.n_group : 1; }

Rows rows_of(const TensorView& v) { return Rows{v.data, v.row_bytes}; }

}  // namespace

Refusal accept_dense(const NodeDesc& node) {
  const int count = weight_count(node.op, node.attrs);
  for (int i = 0; i < count; ++i) {
    const TensorView& w = node.in[static_cast<size_t>(first_weight(node.op) + i)];
    if (w.layout != Layout::kPacked) return "needs packed weights, got plain";
    if (packed_format(w.dtype) == kFmtCount) {
      return "no matmul kernel for weights of type " + std::string(dtype_info(w.dtype).name);
    }
  }
  if (node.in[0].dtype != DType::kF32) return "needs f32 activations";
  return {};
}

size_t dense_scratch(const MatmulKernels& kernels, const NodeDesc& node, int n_threads) {
  const auto weights = node.in.subspan(static_cast<size_t>(first_weight(node.op)),
                                       static_cast<size_t>(weight_count(node.op, node.attrs)));
  return static_cast<size_t>(
      Plan(kernels, node.op, weights, node.in[0].shape.rows(), node.in[0].shape.last()).bytes(n_threads));
}

void run_dense(const MatmulKernels& kernels, Op op, const KernelArgs& args, Worker& worker) {
  const int count = weight_count(op, *args.attrs);
  const TensorView* weights = args.in + first_weight(op);
  const TensorView& x = args.in[0];
  const Plan plan(kernels, op, std::span(weights, static_cast<size_t>(count)), x.shape.rows(), x.shape.last());
  if (plan.n == 0) return;
  MINFER_DCHECK(static_cast<int64_t>(args.scratch_bytes) >= plan.bytes(worker.count()));

  Activations act;
  act.kernels = &kernels;
  act.k = plan.k;
  uint8_t* scratch = reinterpret_cast<uint8_t*>(args.scratch);
  const int64_t copies = plan.redundant ? worker.count() : 1;
  uint8_t* mine = scratch + (plan.redundant ? worker.index() : 0) * (plan.q8 + plan.f32);
  uint8_t* own = scratch + copies * (plan.q8 + plan.f32) + worker.index() * (plan.unpack + plan.norm);
  uint8_t* unpacked = own;
  if (op == Op::kNormMatMulGroup) {
    act.gains = args.in[1].as<float>();
    act.eps = args.attrs->eps;
    act.normed = reinterpret_cast<float*>(own + plan.unpack);
  }
  if (plan.any_q) {
    act.q = make_tiling(kernels.widths, plan.n);
    act.q8 = mine;
  }
  if (plan.any_f && plan.n > 1) {
    act.f = make_tiling(kernels.float_widths, plan.n);
    act.f32 = reinterpret_cast<float*>(mine + plan.q8);
  }
  const int64_t n_pieces = activation_pieces(act);
  const Worker::Range share = plan.redundant ? Worker::Range{0, n_pieces} : worker.share(n_pieces);
  fill_activations(act, rows_of(x), share.begin, share.end);
  if (!plan.redundant && n_pieces > 0 && !worker.barrier()) return;
  if (plan.any_f && plan.n == 1) {
    act.f = make_tiling(kernels.float_widths, 1);
    act.f32 = x.as<float>();
    if (act.gains != nullptr) {
      act.f32 = act.normed;
      if (!plan.any_q || !plan.redundant) kernels.rms_norm(x.as<float>(), act.gains, act.eps, act.normed, plan.k);
    }
  }

  // Work is a list of (token block, weight, chunk of row groups), in this order.
  Piece piece[kMaxOutputs];
  int64_t chunk[kMaxOutputs], chunks_before[kMaxOutputs + 1] = {0};
  const bool many = plan.n > kMaxTile;
  for (int i = 0; i < count; ++i) {
    const TensorView& w = weights[i];
    Piece& p = piece[i];
    p.format = packed_format(w.dtype);
    p.w = reinterpret_cast<const uint8_t*>(w.data);
    p.group_bytes = packed_group_bytes(w.dtype, plan.k);
    p.segment_bytes = packed_group_bytes(w.dtype, kSegment);
    p.m = w.shape[w.shape.rank - 2];
    p.y = rows_of(args.out[i]);
    p.bias = nullptr;
    if (is_group(op) && !weights[count + i].absent()) p.bias = weights[count + i].as<float>();
    if (op == Op::kMatMulAdd) {
      if (!args.in[2].absent()) p.bias = args.in[2].as<float>();
      p.residual = rows_of(args.in[3]);
    }
    const int64_t groups = packed_groups(p.m);
    const int64_t step = kernels.formats[p.format].groups;
    int64_t c = many ? kPrefillGroups : std::max<int64_t>(1, kStreamBytes / p.group_bytes);
    c = std::min(c, std::max<int64_t>(1, groups / (4 * worker.count())));  // at least four chunks per worker
    chunk[i] = (c + step - 1) / step * step;
    chunks_before[i + 1] = chunks_before[i] + (groups + chunk[i] - 1) / chunk[i];
  }
  const int64_t per_block = chunks_before[count];
  const int64_t block = token_block(plan.n), blocks = (plan.n + block - 1) / block;
  const auto run_chunk = [&](int64_t i) {
    const int64_t in_block = i % per_block;
    int part = 0;
    while (in_block >= chunks_before[part + 1]) ++part;
    Piece& p = piece[part];
    p.group0 = (in_block - chunks_before[part]) * chunk[part];
    p.group1 = std::min(p.group0 + chunk[part], packed_groups(p.m));
    const Tiling& t = act.tiling(packed_is_float(p.format));
    p.tile0 = i / per_block * block / t.full;
    p.tile1 = std::min(t.count, p.tile0 + block / t.full);
    run_piece(act, p, unpacked);
  };
  const int64_t total = per_block * blocks;
  if (many) {
    for (int64_t i; (i = args.counter->fetch_add(1, std::memory_order_relaxed)) < total;) run_chunk(i);
    return;
  }
  // Few tokens: the weights are streamed. Each worker reads one long run of memory, which the hardware prefetcher
  // follows, and only the last part of all runs is handed out chunk by chunk, so that a slow core does not hold up the
  // rest.
  const int64_t n = worker.count(), tail = total / (kStreamTail * n);
  const int64_t begin = total * worker.index() / n, end = total * (worker.index() + 1) / n;
  for (int64_t i = begin; i < end - tail; ++i) run_chunk(i);
  for (int64_t j; (j = args.counter->fetch_add(1, std::memory_order_relaxed)) < tail * n;) {
    run_chunk(total * (j % n + 1) / n - tail + j / n);
  }
}

}  // namespace minfer::cpu
