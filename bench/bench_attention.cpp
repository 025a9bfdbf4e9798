// bench_attention: speed of the attention kernels.
//   bench_attention [--isa avx512] [--types f16,q8_0] [--threads 1,2] [--heads 16] [--kv-heads 8] [--dim 128] [--depth
//   4096]
//                   [--tokens 1,4,512] [--ms 200] [--layers 0]   0 = as many regions as overflow the caches
// With one thread the time is the thread's processor time, so that a busy machine disturbs less.
// Prints the best of the repetitions: GB/s of K and V read (each position once per KV head) and GFLOP/s (4 * head_dim
// per visible position and head).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <time.h>

#include "backend/backend.h"
#include "tensor/kv_layout.h"

namespace {

using namespace minfer;

// Seconds: processor time of this thread when it works alone, otherwise wall time.
double now(bool alone) {
  timespec t;
  clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::vector<std::string> split(const std::string& s) {
  std::vector<std::string> out;
  for (size_t i = 0; i <= s.size();) {
    const size_t j = std::min(s.find(',', i), s.size());
    out.push_back(s.substr(i, j - i));
    i = j + 1;
  }
  return out;
}

struct Options {
  std::string isa, types = "f16,q8_0", threads = "1,2", tokens = "1,4,512";
  int heads = 16, kv_heads = 8, dim = 128, depth = 4096, ms = 200, layers = 0;
};

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "bench_attention: %s\n", why.c_str());
  std::exit(2);
}

// A region filled with finite values of its type.
Buffer make_region(DType type, int64_t bytes) {
  Buffer b = std::move(Buffer::allocate(static_cast<size_t>(bytes))).value();
  for (int64_t i = 0; i < bytes; ++i)
    b.data()[i] = static_cast<std::byte>(type == DType::kF32 ? 0 : (i * 7 + 13) % 0x38);
  return b;
}

void run(const Options& o, const Kernel& kernel, ThreadPool& pool, DType type, int n) {
  const int64_t page = 64, n_kv = (o.depth + n + 255) / 256 * 256, pages = n_kv / page;
  const Attrs attrs{.scale = 0.1f,
                    .n_head = o.heads,
                    .n_head_kv = o.kv_heads,
                    .head_dim = o.dim,
                    .page_size = static_cast<int32_t>(page),
                    .n_kv = static_cast<int32_t>(n_kv)};
  const int64_t region_bytes = kv_region_bytes(type, n_kv, o.kv_heads, o.dim);
  const auto layers = o.layers > 0
                          ? static_cast<size_t>(o.layers)
                          : static_cast<size_t>(std::clamp<int64_t>((int64_t{96} << 20) / region_bytes, 1, 64));
  std::vector<Buffer> k, v;
  for (size_t i = 0; i < layers; ++i)
    k.push_back(make_region(type, region_bytes)), v.push_back(make_region(type, region_bytes));
  std::vector<float> q(static_cast<size_t>(n) * o.heads * o.dim), y(q.size());
  for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(i % 17) * 0.01f;
  std::vector<int32_t> positions(static_cast<size_t>(n)), seqs(static_cast<size_t>(n), 0),
      table(static_cast<size_t>(pages));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = o.depth + static_cast<int32_t>(i);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i);
  const auto view = [](DType t, Shape s, void* p, Layout l = Layout::kPlain) {
    return TensorView{t, l, s, dtype_row_bytes(t, s.last()), static_cast<std::byte*>(p)};
  };
  KernelArgs args;
  args.attrs = &attrs;
  args.n_in = 6, args.n_out = 1;
  const int64_t width = int64_t{o.heads} * o.dim, kv_width = int64_t{o.kv_heads} * o.dim;
  args.in[0] = view(DType::kF32, {n, width}, q.data());
  args.in[1] = view(type, {n_kv, kv_width}, k[0].data(), Layout::kKvK);
  args.in[2] = view(type, {n_kv, kv_width}, v[0].data(), Layout::kKvV);
  args.in[3] = view(DType::kI32, {n}, positions.data());
  args.in[4] = view(DType::kI32, {n}, seqs.data());
  args.in[5] = view(DType::kI32, {1, pages}, table.data());
  args.out[0] = view(DType::kF32, {n, width}, y.data());
  const bool present[6] = {true, true, true, true, true, true};
  const NodeDesc node{Op::kAttention, attrs, {args.in, 6}, {args.out, 1}, present};
  if (const Refusal why = kernel.accepts(node); !why.empty()) die(why);
  args.scratch_bytes = kernel.scratch_bytes(node, pool.size());
  Buffer scratch = std::move(Buffer::allocate(args.scratch_bytes)).value();
  args.scratch = scratch.data();
  std::atomic<int64_t> a{0}, b{0};
  args.counter = &a, args.counter2 = &b;
  double pairs = 0;
  for (int32_t p : positions) pairs += p + 1;
  double best = 1e9, total = 0;
  for (size_t rep = 0; rep < 3 || total < o.ms * 1e-3; ++rep) {
    args.in[1].data = k[rep % layers].data(), args.in[2].data = v[rep % layers].data();
    a = 0, b = 0;
    const bool alone = pool.size() == 1;
    const double t = now(alone);
    const Status status = pool.run([&](Worker& w) { kernel.run(args, w); });
    const double s = now(alone) - t;
    if (!status.ok()) die(status.error().message);
    best = std::min(best, s), total += s;
  }
  const double bytes = 2.0 * (positions.back() + 1) * static_cast<double>(dtype_row_bytes(type, kv_width));
  std::printf("%-7s %-5s threads %d  tokens %4d  depth %5d  %9.1f us  %6.1f GB/s  %7.1f GFLOP/s\n", kernel.isa,
              std::string(dtype_info(type).name).c_str(), pool.size(), n, o.depth, best * 1e6, bytes / best * 1e-9,
              4.0 * o.dim * pairs * o.heads / best * 1e-9);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const char* value = argv[i + 1];
    if (flag == "--isa")
      o.isa = value;
    else if (flag == "--types")
      o.types = value;
    else if (flag == "--threads")
      o.threads = value;
    else if (flag == "--tokens")
      o.tokens = value;
    else if (flag == "--heads")
      o.heads = std::atoi(value);
    else if (flag == "--kv-heads")
      o.kv_heads = std::atoi(value);
    else if (flag == "--dim")
      o.dim = std::atoi(value);
    else if (flag == "--depth")
      o.depth = std::atoi(value);
    else if (flag == "--layers")
      o.layers = std::atoi(value);
    else if (flag == "--ms")
      o.ms = std::atoi(value);
    else
      die("unknown flag " + flag);
  }
  auto backend = make_backend({"cpu", o.isa});
  if (!backend.ok()) die(backend.error().message);
  const Kernel& kernel = (*backend)->kernels(Op::kAttention)[0];
  for (const std::string& type : split(o.types)) {
    const auto t = dtype_from_name(type);
    if (!t) die("unknown type " + type);
    for (const std::string& threads : split(o.threads)) {
      auto pool = ThreadPool::create(std::atoi(threads.c_str()));
      if (!pool.ok()) die(pool.error().message);
      for (const std::string& tokens : split(o.tokens)) run(o, kernel, **pool, *t, std::atoi(tokens.c_str()));
    }
  }
  return 0;
}
