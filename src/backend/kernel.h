// Kernel: one implementation of one op on a host backend, and the ordered lists they are chosen from.
// A kernel runs on all workers at once (SPMD): it splits its work by worker.share() or by the shared counter,
// uses worker.barrier() inside if it must, and reports impossible inputs with worker.fail(). The executor puts a
// barrier between nodes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "graph/op.h"
#include "tensor/view.h"

namespace minfer {

struct KernelArgs {
  const Attrs* attrs = nullptr;
  int n_in = 0, n_out = 0;
  TensorView in[kMaxInputs];     // absent() where an optional input is missing
  TensorView out[kMaxOutputs];   // an output may alias an input where the kernel said so (in_place)
  std::byte* scratch = nullptr;  // 64-byte aligned, shared by all workers, contents undefined at start
  size_t scratch_bytes = 0;
  // Zero when the kernel starts: hand out work with fetch_add. One per node and run.
  std::atomic<int64_t>* counter = nullptr;
  // The second one, for kernels of two phases (a barrier between them).
  std::atomic<int64_t>* counter2 = nullptr;
};

// What a kernel may ask about a node before it accepts it.
struct NodeDesc {
  Op op;
  const Attrs& attrs;
  std::span<const TensorView>
      in;  // data pointers are not valid yet, except that absent inputs have absent() set by `present`
  std::span<const TensorView> out;
  std::span<const bool> present;  // per input
};

// Empty = accepted; otherwise why not ("needs packed weights, got plain").
using Refusal = std::string;

struct Kernel {
  const char* name;  // "matmul_packed"
  const char* isa;   // "ref", "scalar", "avx2", "avxvnni", "avx512", "neon"
  Refusal (*accepts)(const NodeDesc& node);
  void (*run)(const KernelArgs& args, Worker& worker);
  size_t (*scratch_bytes)(const NodeDesc& node, int n_threads) = nullptr;  // nullptr = none
  // The input whose buffer output 0 may reuse when nobody needs it later, -1 = none. Such a kernel gives the same bits
  // in place.
  int in_place = -1;
};

// Bytes moved and arithmetic of a node, for traces and rooflines.
struct Cost {
  double bytes = 0;  // read + written, each byte once
  double flops = 0;  // 2 per multiply-add
};
Cost node_cost(const NodeDesc& node);

}  // namespace minfer
