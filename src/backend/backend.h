// Backend: where a plan runs. Host backends are lists of kernels over ordinary memory.
// Threads: const methods from any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backend/kernel.h"
#include "tensor/buffer.h"

namespace minfer {

struct PackedWeight {
  TensorView view;  // layout kPacked, dtype and shape of the source
  Buffer storage;   // empty when the view points at the source (nothing to repack)
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;  // "ref", "cpu"
  virtual const char* isa() const = 0;   // "ref", "scalar", "avx2", "avxvnni", "avx512", "neon"

  // Kernels of an op, best first. Empty for a composite the backend does not override.
  virtual std::span<const Kernel> kernels(Op op) const = 0;

  // Turns a plain matmul weight [m, k] (or expert weights [n_expert, m, k]) into the form the matmul kernels want.
  // Runs on the pool. nullopt: the plain form is what the kernels want. Errors: memory, or a type without kernels.
  virtual Result<std::optional<PackedWeight>> pack_weight(const TensorView& plain, ThreadPool& pool) const = 0;
};

struct BackendOptions {
  std::string device = "cpu";  // "ref", "cpu"
  std::string isa;             // empty = best the processor has; otherwise forced: an error if the processor lacks it
};

// Errors: an unknown or unavailable device or ISA, listing what there is here.
Result<std::unique_ptr<Backend>> make_backend(const BackendOptions& options);

// ISAs this processor can run, best first ("avx512", "avx2", "scalar").
std::vector<std::string> available_isas();

}  // namespace minfer
