// Measuring the machine: read bandwidth, f32 and int8 arithmetic peaks, with the instruction set in use.
// Threads: runs on the pool it is given; nothing else should run on the machine.
#pragma once

#include "base/cpu_info.h"
#include "base/thread_pool.h"

namespace minfer::cpu {

struct Peak {
  double read_gb_per_s = 0;    // 10^9 bytes per second, from memory (a buffer several times the last-level cache)
  double f32_gflop_per_s = 0;  // 2 per multiply-add
  double int8_gop_per_s = 0;   // 2 per product
};

Result<Peak> measure_peak(ThreadPool& pool, IsaLevel isa);
// Only the bandwidth, in about a tenth of a second: the sample to put beside a measurement.
Result<double> measure_read_gb_per_s(ThreadPool& pool, IsaLevel isa);

}  // namespace minfer::cpu
