// attention: all query heads of a KV head and a block of tokens together against tiles of 256 positions.
// Two ways to share the work, chosen by how much there is:
//   whole: one item is (block of tokens, KV head) with all its tiles in order; prefill and short contexts.
//   split: one item is (block, KV head, tile); the tiles' (m, l, o) go to scratch and are merged in order after a
//          barrier; decode at depth. The scratch is bounded: when the tiles do not fit, they come in waves.
// Errors:  a position, sequence or page outside its limit; found by every worker before anything starts.
// Threads: items are handed out by the counters; no item depends on which worker runs it.
#include <algorithm>
#include <cstring>

#include "backend/cpu/ops/attention_blocks.h"
#include "backend/cpu/ops/op_lists.h"
#include "backend/cpu/select.h"
#include "tensor/kv_layout.h"

namespace minfer::cpu {

namespace {

// Rows (query heads x tokens) of a block: 24 = four register tiles of six rows; K and V of a tile are read from the L2
// cache once per 24 rows, 256 * 24 * 4 bytes of scores stay in L1/L2.
constexpr int64_t kBlockRows = 24;
constexpr int64_t kItemsPerWorker = 4;  // fewer whole items than this and tiles are split
// Scratch for the tiles' results, all workers together: 16 items per worker keep the ends of a wave short.
constexpr int64_t kPartialItems = 16, kPartialBytesLeast = 512 * 1024, kPartialBytesMost = 4 * 1024 * 1024;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Sizes that follow from the node alone.
struct Sizes {
  int64_t n_tokens, n_head, n_head_kv, per_kv, head_dim, o_stride, block_tokens, rows;
  int64_t split_blocks;  // at most so many blocks are split
  int64_t wave_tiles;    // tiles of each (block, KV head) in scratch at once
  // Offsets in bytes.
  int64_t local_bytes, partial_bytes, state_bytes;  // of one worker, of one item, of one (block, KV head)

  Sizes(const Attrs& attrs, int64_t n, int n_threads)
      : n_tokens(n),
        n_head(attrs.n_head),
        n_head_kv(attrs.n_head_kv),
        per_kv(n_head / n_head_kv),
        head_dim(attrs.head_dim),
        o_stride(round_up(head_dim, 16)),
        block_tokens(std::max<int64_t>(1, kBlockRows / per_kv)),
        rows(per_kv * std::min(block_tokens, std::max<int64_t>(n, 1))) {
    const int64_t state = rows * (o_stride + 2);              // o, m, l
    const int64_t query = rows * round_up(head_dim, 32) * 2;  // f32, or int8 codes with scales and sums: less
    local_bytes = round_up((rows * kTilePositions + query + 2 * state + 2 * rows) * 4 + 5 * 64, 64);
    partial_bytes = state_bytes = round_up(state * 4, 64);
    split_blocks = std::min(n, (kItemsPerWorker * n_threads + n_head_kv - 1) / n_head_kv);
    const int64_t pairs = std::max<int64_t>(1, split_blocks * n_head_kv);
    const int64_t budget = std::clamp(kPartialItems * n_threads * partial_bytes, kPartialBytesLeast, kPartialBytesMost);
    wave_tiles =
        std::clamp<int64_t>(budget / (pairs * partial_bytes), 1, std::max<int64_t>(1, attrs.n_kv / kTilePositions));
  }

  int64_t scratch_bytes(int n_threads) const {
    return n_threads * local_bytes + split_blocks * n_head_kv * (wave_tiles * partial_bytes + state_bytes);
  }
};

// Running or partial result of the rows of one (block, KV head).
struct State {
  float *o, *m, *l;  // [rows][o_stride], [rows], [rows]
  State(std::byte* p, const Sizes& s) : o(reinterpret_cast<float*>(p)), m(o + s.rows * s.o_stride), l(m + s.rows) {}
};

// What one worker needs for a block: queries in the form of K, scores, ranges.
class Local {
 public:
  Local(std::byte* p, const Sizes& s) : state(take(p, s), s), partial(take(p, s), s) {
    scores = reinterpret_cast<float*>(p);
    q = scores + s.rows * kTilePositions;
    q_sum = reinterpret_cast<int32_t*>(q);
    q_d = q + s.rows * s.head_dim / 32;
    q_codes = reinterpret_cast<int8_t*>(q + 2 * (s.rows * s.head_dim / 32));
    begin = reinterpret_cast<int32_t*>(q + s.rows * round_up(s.head_dim, 32) * 2);
    end = begin + s.rows;
  }
  State state, partial;
  float *scores, *q, *q_d;
  int32_t *q_sum, *begin, *end;
  int8_t* q_codes;

 private:
  static std::byte* take(std::byte*& p, const Sizes& s) {
    std::byte* at = p;
    p += s.state_bytes;
    return at;
  }
};

template <IsaLevel I>
class Attention {
 public:
  Attention(const KernelArgs& args, Worker& worker)
      : args_(args),
        attrs_(*args.attrs),
        worker_(worker),
        sizes_(attrs_, args.in[0].shape[0], worker.count()),
        inputs_{&attrs_,
                sizes_.n_tokens,
                args.in[3].as<int32_t>(),
                args.in[4].as<int32_t>(),
                args.in[5],
                std::min(args.in[1].shape[0], args.in[2].shape[0])},
        type_k_(kv_type_index(args.in[1].dtype)),
        type_v_(kv_type_index(args.in[2].dtype)),
        k_bytes_(kv_head_block_bytes(args.in[1].dtype, attrs_.head_dim)),
        v_bytes_(kv_head_block_bytes(args.in[2].dtype, attrs_.head_dim)),
        local_(args.scratch + worker.index() * sizes_.local_bytes, sizes_),
        walk_(inputs_, sizes_.block_tokens) {}

  void run() {
    if (!check_tokens(inputs_, sizes_.block_tokens, worker_)) return;
    int64_t n_blocks = 0, most_tiles = 0;
    for (TokenBlock b; walk_.next(&b);) ++n_blocks, most_tiles = std::max(most_tiles, b.n_tiles());
    if (most_tiles > 1 && n_blocks * sizes_.n_head_kv < kItemsPerWorker * worker_.count()) {
      run_split(n_blocks, most_tiles);
    } else {
      run_whole(n_blocks);
    }
  }

 private:
  // What run_tile computes. A worker takes its next item before it works on the one it has, so that K can be fetched
  // ahead.
  struct Item {
    TokenBlock block;
    int64_t head = 0, tile = 0;  // tile: by absolute position
    bool valid = false;          // the tile exists in this block
  };

  int64_t take(std::atomic<int64_t>* counter) { return counter->fetch_add(1, std::memory_order_relaxed); }

  void run_whole(int64_t n_blocks) {
    const int64_t heads = sizes_.n_head_kv, n_items = n_blocks * heads;
    const auto first_tile = [&](int64_t index, Item item) {  // by value: its block saves walking
      item.valid = index < n_items && walk_.seek(index / heads, &item.block);
      item.head = index % heads, item.tile = item.valid ? item.block.tile_begin() : 0;
      return item;
    };
    Item item = first_tile(take(args_.counter), {});
    while (item.valid) {
      const Item next_item = first_tile(take(args_.counter), item);
      load_queries(item.block, item.head);
      const int64_t end = item.block.tile_begin() + item.block.n_tiles();
      for (; item.tile < end; ++item.tile) {
        Item next = item;
        ++next.tile;
        run_tile(item, next.tile < end ? next : next_item, local_.partial);
        merge_tile(item.block, item.tile, local_.partial, local_.state);
      }
      finish(item.block, item.head, local_.state);
      item = next_item;
    }
  }

  void run_split(int64_t n_blocks, int64_t most_tiles) {
    const int64_t heads = sizes_.n_head_kv, pairs = n_blocks * heads, per_wave = sizes_.wave_tiles;
    std::byte* states = args_.scratch + worker_.count() * sizes_.local_bytes;
    std::byte* partials = states + sizes_.split_blocks * heads * sizes_.state_bytes;
    TokenBlock block;
    for (int64_t wave = 0; wave < most_tiles; wave += per_wave) {
      const int64_t n = std::min(per_wave, most_tiles - wave);
      const bool last = wave + n == most_tiles;
      // Items in order of memory: the heads of a tile stand side by side.
      const auto item_at = [&](int64_t index, Item item) {
        const int64_t tile = wave + index / heads % n;
        item.valid = index < pairs * n && walk_.seek(index / heads / n, &item.block) && tile < item.block.n_tiles();
        item.head = index % heads, item.tile = item.block.tile_begin() + tile;
        return item;
      };
      int64_t index = take(args_.counter);
      Item item = item_at(index, {});
      while (index < pairs * n) {
        const int64_t next_index = take(args_.counter);
        const Item next = item_at(next_index, item);
        if (item.valid) {
          load_queries(item.block, item.head);
          run_tile(item, next, State(partials + index * sizes_.partial_bytes, sizes_));
        }
        index = next_index, item = next;
      }
      worker_.barrier();
      if (worker_.index() == 0)
        args_.counter->store(0, std::memory_order_relaxed);  // nobody takes from it before the next barrier
      for (int64_t pair; (pair = take(args_.counter2)) < pairs;) {
        const int64_t head = pair % heads, b = pair / heads;
        walk_.seek(b, &block);
        const State state(states + pair * sizes_.state_bytes, sizes_);
        const int64_t tiles = std::min(n, block.n_tiles() - wave);
        for (int64_t i = 0; i < tiles; ++i) {
          const int64_t item = (b * n + i) * heads + head;
          merge_tile(block, block.tile_begin() + wave + i, State(partials + item * sizes_.partial_bytes, sizes_),
                     state);
        }
        if (last) finish(block, head, state);
      }
      if (last) return;
      worker_.barrier();
      if (worker_.index() == 0) args_.counter2->store(0, std::memory_order_relaxed);
    }
  }

  int64_t n_rows(const TokenBlock& block) const { return block.n_tokens * sizes_.per_kv; }
  int64_t token_of(const TokenBlock& block, int64_t row) const { return block.first + row / sizes_.per_kv; }

  void load_queries(const TokenBlock& block, int64_t head) {
    const int64_t d = sizes_.head_dim, blocks = d / 32;
    for (int64_t r = 0; r < n_rows(block); ++r) {
      const float* q = args_.in[0].row<float>(token_of(block, r)) + (head * sizes_.per_kv + r % sizes_.per_kv) * d;
      if (type_k_ == static_cast<int>(KvType::kQ8_0)) {
        kernels().quantize(q, local_.q_codes + r * d, local_.q_d + r * blocks, local_.q_sum + r * blocks, d);
      } else {
        std::memcpy(local_.q + r * d, q, static_cast<size_t>(d) * sizeof(float));
      }
    }
  }

  // The groups of the item's tile that some row sees, and their head blocks in a region.
  struct Groups {
    int begin, end;
  };
  Groups groups_of(const Item& item) const {
    const int64_t first = item.tile * kTilePositions;
    const int64_t begin = std::max(item.block.lo, first), end = std::min(item.block.hi + 1, first + kTilePositions);
    return {static_cast<int>((begin - first) / kKvGroup), static_cast<int>((end - first + kKvGroup - 1) / kKvGroup)};
  }
  void find_blocks(const Item& item, const TensorView& region, int64_t block_bytes, const std::byte** blocks) const {
    const Groups groups = groups_of(item);
    for (int g = groups.begin; g < groups.end; ++g) {
      const int64_t p = item.tile * kTilePositions + g * kKvGroup;
      const int64_t slot = item.block.pages[p / attrs_.page_size] * int64_t{attrs_.page_size} + p % attrs_.page_size;
      blocks[g] = region.data + (slot / kKvGroup * sizes_.n_head_kv + item.head) * block_bytes;
    }
  }

  // (m, l, o) of the rows that see something of the tile.
  void run_tile(const Item& item, const Item& next, const State& out) {
    const TokenBlock& block = item.block;
    const int64_t first = item.tile * kTilePositions, rows = n_rows(block);
    AttnTile t{};
    t.head_dim = sizes_.head_dim;
    t.n_rows = static_cast<int>(rows);
    const Groups groups = groups_of(item);
    t.group_begin = groups.begin, t.group_end = groups.end;
    t.k_bytes = k_bytes_, t.v_bytes = v_bytes_;
    find_blocks(item, args_.in[1], k_bytes_, t.k);
    find_blocks(item, args_.in[2], v_bytes_, t.v);
    if (next.valid) find_blocks(next, args_.in[1], k_bytes_, t.next_k);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t p = inputs_.positions[token_of(block, r)];
      local_.begin[r] =
          static_cast<int32_t>(std::clamp<int64_t>(visible_begin(p, attrs_.window) - first, 0, kTilePositions));
      local_.end[r] = static_cast<int32_t>(std::clamp<int64_t>(p + 1 - first, 0, kTilePositions));
    }
    t.begin = local_.begin, t.end = local_.end;
    t.q = local_.q, t.q_stride = sizes_.head_dim;
    t.q_codes = local_.q_codes, t.q_d = local_.q_d, t.q_sum = local_.q_sum;
    t.scale = attrs_.scale, t.softcap = attrs_.softcap;
    t.s = local_.scores, t.m = out.m, t.l = out.l, t.o = out.o, t.o_stride = sizes_.o_stride;
    kernels().scores[type_k_](t);
    kernels().softmax(t);
    kernels().mix[type_v_](t);
  }

  void merge_tile(const TokenBlock& block, int64_t tile, const State& part, const State& state) {
    for (int64_t r = 0; r < n_rows(block); ++r) {
      const int64_t p = inputs_.positions[token_of(block, r)];
      const int64_t first_tile = visible_begin(p, attrs_.window) / kTilePositions;
      if (tile < first_tile || tile > p / kTilePositions) continue;
      float *o = state.o + r * sizes_.o_stride, *other = part.o + r * sizes_.o_stride;
      if (tile == first_tile) {
        state.m[r] = part.m[r], state.l[r] = part.l[r];
        std::memcpy(o, other, static_cast<size_t>(sizes_.head_dim) * sizeof(float));
      } else {
        kernels().merge(part.m[r], part.l[r], other, state.m + r, state.l + r, o, sizes_.head_dim);
      }
    }
  }

  void finish(const TokenBlock& block, int64_t head, const State& state) {
    for (int64_t r = 0; r < n_rows(block); ++r) {
      float* y =
          args_.out[0].row<float>(token_of(block, r)) + (head * sizes_.per_kv + r % sizes_.per_kv) * sizes_.head_dim;
      kernels().divide(state.o + r * sizes_.o_stride, state.l[r], y, sizes_.head_dim);
    }
  }

  static const AttnKernels& kernels() { return cpu_kernels(I).attn; }

  const KernelArgs& args_;
  const Attrs& attrs_;
  Worker& worker_;
  Sizes sizes_;
  AttnInputs inputs_;
  int type_k_, type_v_;
  int64_t k_bytes_, v_bytes_;  // of a head block
  Local local_;
  BlockWalk walk_;
};

Refusal accept(const NodeDesc& node) {
  for (size_t i : {1, 2}) {
    if (Refusal why = kv_refusal(node.in[i].dtype, node.attrs.head_dim); !why.empty()) return why;
  }
  return {};
}

size_t scratch(const NodeDesc& node, int n_threads) {
  return static_cast<size_t>(Sizes(node.attrs, node.in[0].shape[0], n_threads).scratch_bytes(n_threads));
}

template <IsaLevel I>
void run(const KernelArgs& args, Worker& worker) {
  Attention<I>(args, worker).run();
}

template <IsaLevel I>
std::span<const Kernel> list(Op op) {
  static constexpr Kernel kAttention[] = {{"attention", kIsaText<I>, accept, run<I>, scratch, -1}};
  if (op == Op::kAttention) return kAttention;
  return {};
}

}  // namespace

std::span<const Kernel> attention_kernels(Op op, IsaLevel isa) { MINFER_LIST_BY_ISA(list, op, isa); }

}  // namespace minfer::cpu
