// Best of a few short runs per resource: noise only ever slows a run down.
#include "backend/cpu/peak.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/peak_kernels.h"
#include "tensor/buffer.h"
#include "trace/tracer.h"

namespace minfer::cpu {
namespace {

constexpr size_t kReadBytes = size_t{256} << 20;  // 8 times a 32 MiB cache
constexpr int kRepeats = 5;

const PeakKernels& kernels_for(IsaLevel isa) {
#if defined(__x86_64__)
  if (isa == IsaLevel::kAvx512) return peak_kernels_avx512();
  if (isa == IsaLevel::kAvxVnni) return peak_kernels_avxvnni();
  if (isa == IsaLevel::kAvx2) return peak_kernels_avx2();
#elif defined(__aarch64__)
  if (isa == IsaLevel::kNeon) return peak_kernels_neon();
#endif
  return peak_kernels_generic();
}

template <typename Fn>
Result<double> best_rate(ThreadPool& pool, int repeats, Fn fn) {
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    std::vector<double> amounts(static_cast<size_t>(pool.size()));
    const int64_t t0 = now_ns();
    MINFER_TRY(pool.run([&](Worker& w) { amounts[static_cast<size_t>(w.index())] = fn(w); }));
    const double seconds = static_cast<double>(now_ns() - t0) * 1e-9;
    double sum = 0;
    for (double a : amounts) sum += a;
    best = std::max(best, sum / seconds);
  }
  return best * 1e-9;
}

}  // namespace

Result<double> measure_read_gb_per_s(ThreadPool& pool, IsaLevel isa) {
  const PeakKernels& k = kernels_for(isa);
  static thread_local Buffer buffer;  // kept: making it costs more than reading it
  if (buffer.bytes() == 0) {
    buffer = MINFER_TRY_CTX(Buffer::allocate(kReadBytes), "[peak]");
    std::memset(buffer.data(), 1, kReadBytes);
  }
  const std::byte* data = buffer.data();
  volatile uint64_t sink = 0;
  return best_rate(pool, 3, [&](Worker& w) {
    const auto r = w.share(static_cast<int64_t>(kReadBytes), 4096);
    sink = k.read(data + r.begin, static_cast<size_t>(r.end - r.begin));
    return static_cast<double>(r.end - r.begin);
  });
}

Result<Peak> measure_peak(ThreadPool& pool, IsaLevel isa) {
  const PeakKernels& k = kernels_for(isa);
  constexpr int64_t kRounds = 4'000'000;  // some 20 ms per run
  Peak p;
  std::vector<float> fsink(static_cast<size_t>(pool.size()) * 16);
  std::vector<int32_t> isink(static_cast<size_t>(pool.size()) * 16);
  p.f32_gflop_per_s = MINFER_TRY(best_rate(
      pool, kRepeats, [&](Worker& w) { return k.f32_fma(kRounds, &fsink[static_cast<size_t>(w.index()) * 16]); }));
  p.int8_gop_per_s = MINFER_TRY(best_rate(
      pool, kRepeats, [&](Worker& w) { return k.int8_dot(kRounds, &isink[static_cast<size_t>(w.index()) * 16]); }));
  p.read_gb_per_s = MINFER_TRY(measure_read_gb_per_s(pool, isa));
  return p;
}

}  // namespace minfer::cpu
