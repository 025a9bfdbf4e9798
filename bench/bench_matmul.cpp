// bench_matmul: speed of the packed matmul kernels, beside limits measured in the same run.
//   bench_matmul [--types q8_0,q4_0] [--tokens 1,8,512] [--threads 1,2] [--isa avx512] [-m 3072] [-k 1024] [--ms 200]
// Prints per line: GOP/s (2 per multiply-add) with its share of the int8 (or f32 fma) peak, and GB/s of weights with
// its share of the read bandwidth. Weights cycle through more memory than the caches hold.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backend/cpu/matmul/matmul_ops.h"

namespace {

using namespace minfer;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

std::vector<std::string> split(const std::string& s) {
  std::vector<std::string> out;
  for (size_t i = 0; i <= s.size();) {
    const size_t j = std::min(s.find(',', i), s.size());
    out.push_back(s.substr(i, j - i));
    i = j + 1;
  }
  return out;
}

#if defined(__x86_64__)
// Sixteen independent chains: enough for a latency of 4 at two per cycle.
__attribute__((target("avx512f,avx512vnni"))) double int8_ops_avx512(int64_t n) {
  __m512i acc[16], a = _mm512_set1_epi8(1), b = _mm512_set1_epi8(2);
  for (auto& v : acc) v = _mm512_setzero_si512();
  for (int64_t i = 0; i < n; ++i) {
    asm volatile("" : "+v"(a), "+v"(b));
#pragma GCC unroll 16
    for (auto& v : acc) v = _mm512_dpbusd_epi32(v, a, b);
  }
  for (auto& v : acc) asm volatile("" ::"v"(v));
  return static_cast<double>(n) * 16 * 128;
}
__attribute__((target("avx512f"))) double fma_ops_avx512(int64_t n) {
  __m512 acc[16], a = _mm512_set1_ps(1), b = _mm512_set1_ps(2);
  for (auto& v : acc) v = _mm512_setzero_ps();
  for (int64_t i = 0; i < n; ++i) {
    asm volatile("" : "+v"(a), "+v"(b));
#pragma GCC unroll 16
    for (auto& v : acc) v = _mm512_fmadd_ps(v, a, b);
  }
  for (auto& v : acc) asm volatile("" ::"v"(v));
  return static_cast<double>(n) * 16 * 32;
}
__attribute__((target("avx2"))) double int8_ops_avx2(int64_t n) {
  __m256i acc[12], a = _mm256_set1_epi8(1), b = _mm256_set1_epi8(2);
  for (auto& v : acc) v = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; ++i) {
    asm volatile("" : "+x"(a), "+x"(b));
#pragma GCC unroll 12
    for (auto& v : acc) v = _mm256_add_epi16(v, _mm256_maddubs_epi16(a, b));
  }
  for (auto& v : acc) asm volatile("" ::"x"(v));
  return static_cast<double>(n) * 12 * 64;
}
__attribute__((target("avx2,fma"))) double fma_ops_avx2(int64_t n) {
  __m256 acc[12], a = _mm256_set1_ps(1), b = _mm256_set1_ps(2);
  for (auto& v : acc) v = _mm256_setzero_ps();
  for (int64_t i = 0; i < n; ++i) {
    asm volatile("" : "+x"(a), "+x"(b));
#pragma GCC unroll 12
    for (auto& v : acc) v = _mm256_fmadd_ps(v, a, b);
  }
  for (auto& v : acc) asm volatile("" ::"x"(v));
  return static_cast<double>(n) * 12 * 16;
}
#endif

using OpsFn = double (*)(int64_t);

// Best of five short runs on all threads, in operations per second.
double peak_ops(ThreadPool& pool, OpsFn fn) {
  if (!fn) return 0;
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    std::atomic<int64_t> ops{0};
    const auto t = Clock::now();
    (void)pool.run([&](Worker&) { ops += static_cast<int64_t>(fn(300000)); });
    best = std::max(best, static_cast<double>(ops) / seconds_since(t));
  }
  return best;
}

// Reads a big buffer once on all threads: bytes per second, best of `runs`.
double read_bandwidth(ThreadPool& pool, const Buffer& buffer, int runs) {
  double best = 0;
  for (int i = 0; i < runs; ++i) {
    std::atomic<int64_t> next{0};
    std::atomic<uint64_t> sink{0};
    constexpr int64_t kChunk = 256 << 10;
    const auto t = Clock::now();
    (void)pool.run([&](Worker&) {
      uint64_t sum = 0;
      const int64_t size = static_cast<int64_t>(buffer.bytes());
      for (int64_t at; (at = next.fetch_add(kChunk)) < size;) {
        const uint64_t* p = reinterpret_cast<const uint64_t*>(buffer.data() + at);
        for (int64_t j = 0; j < std::min(kChunk, size - at) / 8; ++j) sum ^= p[j];
      }
      sink ^= sum;
    });
    best = std::max(best, static_cast<double>(buffer.bytes()) / seconds_since(t));
  }
  return best;
}

// Random bytes with sane scales: NaN and denormals would not change the speed, but zeros in every block are unlike
// weights.
void fill_random(const TensorView& w, std::mt19937& rng) {
  const int64_t bytes = w.row_bytes * w.shape.rows();
  uint32_t* words = w.as<uint32_t>();
  for (int64_t i = 0; i < bytes / 4; ++i)
    words[i] = static_cast<uint32_t>(rng()) & 0xbfffbfffu;  // no f16 exponent of 31
}

}  // namespace

int main(int argc, char** argv) {
  std::string types = "q8_0,q4_0,q4_1,q4_k,q5_k,q6_k,q3_k,q2_k,q5_0,q5_1,iq4_nl,iq4_xs,mxfp4,f16,bf16,f32",
              tokens = "1,4,8,512";
  std::string threads = "1,2", isa_text;
  int64_t m = 3072, k = 1024, ms = 200;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--types")
      types = value;
    else if (key == "--tokens")
      tokens = value;
    else if (key == "--threads")
      threads = value;
    else if (key == "--isa")
      isa_text = value;
    else if (key == "-m")
      m = std::stoll(value);
    else if (key == "-k")
      k = std::stoll(value);
    else if (key == "--ms")
      ms = std::stoll(value);
    else
      return std::fprintf(stderr, "unknown option %s\n", key.c_str()), 2;
  }
  IsaLevel isa = isa_supported(IsaLevel::kAvx512) ? IsaLevel::kAvx512
                 : isa_supported(IsaLevel::kAvx2) ? IsaLevel::kAvx2
                                                  : IsaLevel::kScalar;
  if (!isa_text.empty()) {
    const auto level = isa_from_name(isa_text);
    if (!level || !isa_supported(*level)) return std::fprintf(stderr, "no such isa here: %s\n", isa_text.c_str()), 2;
    isa = *level;
  }
  const Kernel& kernel = cpu::matmul_op_kernels(Op::kMatMul, isa)[0];
  constexpr int64_t kStream = 192 << 20;  // bytes of weights to cycle through: several times a last-level cache share
  const Buffer big = Buffer::allocate(kStream).value();
  std::memset(big.data(), 1, big.bytes());
  std::mt19937 rng(1);

  for (const std::string& th : split(threads)) {
    auto pool = ThreadPool::create(std::stoi(th)).value();
    OpsFn int8_fn = nullptr, fma_fn = nullptr;
#if defined(__x86_64__)
    int8_fn = isa == IsaLevel::kAvx512 ? int8_ops_avx512 : isa == IsaLevel::kAvx2 ? int8_ops_avx2 : nullptr;
    fma_fn = isa == IsaLevel::kAvx512 ? fma_ops_avx512 : isa == IsaLevel::kAvx2 ? fma_ops_avx2 : nullptr;
#endif
    const double int8_peak = peak_ops(*pool, int8_fn), fma_peak = peak_ops(*pool, fma_fn);
    std::printf("%s, %d thread(s): int8 %.0f GOP/s, f32 %.0f GFLOP/s, read %.1f GB/s\n", isa_name(isa), pool->size(),
                int8_peak / 1e9, fma_peak / 1e9, read_bandwidth(*pool, big, 3) / 1e9);
    for (const std::string& type : split(types)) {
      const auto dtype = dtype_from_name(type);
      if (!dtype) return std::fprintf(stderr, "unknown type %s\n", type.c_str()), 2;
      TensorView plain;
      plain.dtype = *dtype;
      plain.shape = {m, k};
      plain.row_bytes = dtype_row_bytes(*dtype, k);
      const Buffer source = Buffer::allocate(static_cast<size_t>(plain.row_bytes * m)).value();
      plain.data = source.data();
      fill_random(plain, rng);
      const auto t_pack = Clock::now();
      const PackedWeight one = std::move(*cpu::pack_weight(plain, *pool).value());
      const double pack_rate = static_cast<double>(one.storage.bytes()) / seconds_since(t_pack);
      const int64_t weight_bytes = static_cast<int64_t>(one.storage.bytes());
      const int64_t copies = std::max<int64_t>(1, kStream / weight_bytes);
      for (int64_t c = 0; c < copies; ++c)
        std::memcpy(big.data() + c * weight_bytes, one.storage.data(), one.storage.bytes());

      for (const std::string& tok : split(tokens)) {
        const int64_t n = std::stoll(tok);
        TensorView x, y;
        x.shape = {n, k};
        x.row_bytes = k * 4;
        y.shape = {n, m};
        y.row_bytes = m * 4;
        const Buffer xb = Buffer::allocate(static_cast<size_t>(n * k * 4)).value(),
                     yb = Buffer::allocate(static_cast<size_t>(n * m * 4)).value();
        x.data = xb.data();
        y.data = yb.data();
        std::normal_distribution<float> normal;
        for (int64_t i = 0; i < n * k; ++i) x.as<float>()[i] = normal(rng);
        const Attrs attrs;
        KernelArgs args;
        args.attrs = &attrs;
        args.n_in = 2;
        args.n_out = 1;
        args.in[0] = x;
        args.in[1] = one.view;
        args.out[0] = y;
        const bool present[] = {true, true};
        const NodeDesc desc{Op::kMatMul, attrs, std::span(args.in, 2), std::span(args.out, 1), present};
        args.scratch_bytes = kernel.scratch_bytes(desc, pool->size());
        const Buffer scratch = Buffer::allocate(args.scratch_bytes + 64).value();
        args.scratch = scratch.data();
        std::vector<std::atomic<int64_t>> counters(64);
        args.counter2 = nullptr;

        // Batches of up to 64 calls in one run, as a graph would make them; the median batch is reported.
        const int batch = n == 1 ? 32 : n <= 16 ? 16 : 1;
        std::vector<double> times;
        int64_t copy = 0;
        const auto begin = Clock::now();
        while (times.size() < 3 || seconds_since(begin) * 1e3 < static_cast<double>(ms)) {
          for (auto& c : counters) c = 0;
          const auto t = Clock::now();
          (void)pool->run([&](Worker& worker) {
            KernelArgs a = args;
            for (int i = 0; i < batch; ++i) {
              a.in[1].data = big.data() + (copy + i) % copies * weight_bytes;
              a.counter = &counters[static_cast<size_t>(i)];
              kernel.run(a, worker);
              if (!worker.barrier()) return;
            }
          });
          times.push_back(seconds_since(t) / batch);
          copy += batch;
        }
        std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2), times.end());
        const double s = times[times.size() / 2], best = *std::min_element(times.begin(), times.end());
        const double ops = 2.0 * static_cast<double>(n * m * k) / s;
        const double rate = static_cast<double>(weight_bytes) / s;
        const double peak = dtype_info(*dtype).quantized ? int8_peak : fma_peak;
        const double read = n <= 16 ? read_bandwidth(*pool, big, 1) : 0;
        std::printf("  %-7s n=%-4lld %8.1f us (best %8.1f)  %7.1f GOP/s %5.1f %%  %6.2f GB/s", type.c_str(),
                    static_cast<long long>(n), s * 1e6, best * 1e6, ops / 1e9, peak > 0 ? 100 * ops / peak : 0,
                    rate / 1e9);
        if (read > 0) std::printf(" %5.1f %% of %.1f", 100 * rate / read, read / 1e9);
        std::printf("   pack %.1f GB/s\n", pack_rate / 1e9);
        std::fflush(stdout);
      }
    }
  }
  return 0;
}
