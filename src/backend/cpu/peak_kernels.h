// Loops that do nothing but keep one execution resource busy, to measure a machine's limits.
// Note: the ISA folders include this header, so it holds declarations only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minfer::cpu {

struct PeakKernels {
  // f32 multiply-adds on registers; returns the operations done (2 per multiply-add). `sink` keeps the result alive.
  double (*f32_fma)(int64_t rounds, float* sink);
  // Integer dot products of bytes, the instruction the matmul kernels use; 2 operations per product.
  double (*int8_dot)(int64_t rounds, int32_t* sink);
  // Reads n bytes (a multiple of 512) once; returns their xor so that no load is dropped.
  uint64_t (*read)(const std::byte* p, size_t n);
};

const PeakKernels& peak_kernels_generic();
const PeakKernels& peak_kernels_avx2();
const PeakKernels& peak_kernels_avxvnni();
const PeakKernels& peak_kernels_avx512();
const PeakKernels& peak_kernels_neon();

}  // namespace minfer::cpu
