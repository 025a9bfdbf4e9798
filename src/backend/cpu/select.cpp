// The only place of the cpu backend that knows which ISA folders a build holds.
#include "backend/cpu/select.h"

#include "base/error.h"

namespace minfer::cpu {

namespace {

constexpr CpuKernels kGeneric = {kElementwiseGeneric, kRowGeneric, kKvGeneric, kAttnGeneric};
#if defined(__x86_64__)
constexpr CpuKernels kAvx2 = {kElementwiseAvx2, kRowAvx2, kKvAvx2, kAttnAvx2};
constexpr CpuKernels kAvxVnni = {kElementwiseAvx2, kRowAvx2, kKvAvx2, kAttnAvxVnni};
constexpr CpuKernels kAvx512 = {kElementwiseAvx512, kRowAvx512, kKvAvx512, kAttnAvx512};
constexpr IsaLevel kBuilt[] = {IsaLevel::kAvx512, IsaLevel::kAvxVnni, IsaLevel::kAvx2, IsaLevel::kScalar};
#elif defined(__aarch64__)
constexpr CpuKernels kNeon = {kElementwiseNeon, kRowNeon, kKvNeon, kAttnNeon};
constexpr IsaLevel kBuilt[] = {IsaLevel::kNeon, IsaLevel::kScalar};
#else
constexpr IsaLevel kBuilt[] = {IsaLevel::kScalar};
#endif

}  // namespace

std::vector<IsaLevel> usable_isas() {
  std::vector<IsaLevel> isas;
  for (IsaLevel isa : kBuilt) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

const CpuKernels& cpu_kernels(IsaLevel isa) {
#if defined(__x86_64__)
  if (isa == IsaLevel::kAvx512) return kAvx512;
  if (isa == IsaLevel::kAvxVnni) return kAvxVnni;
  if (isa == IsaLevel::kAvx2) return kAvx2;
#elif defined(__aarch64__)
  if (isa == IsaLevel::kNeon) return kNeon;
#endif
  MINFER_DCHECK(isa == IsaLevel::kScalar);
  return kGeneric;
}

}  // namespace minfer::cpu
