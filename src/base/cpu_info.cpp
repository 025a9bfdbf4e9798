// Source: Intel SDM vol. 2A, CPUID leaves 1 and 7 (subleaves 0 and 1) and XGETBV; Linux getauxval(3) for Arm.
#include "base/cpu_info.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace minfer {

namespace {

#if defined(__x86_64__)

constexpr bool bit(uint32_t word, int i) { return (word >> i) & 1u; }

// XCR0: which register files the system saves on a context switch.
uint64_t read_xcr0() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

bool x86_has(IsaLevel isa) {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
  const bool fma = bit(c, 12), osxsave = bit(c, 27), avx = bit(c, 28), f16c = bit(c, 29);
  if (!osxsave || !avx || !fma || !f16c) return false;
  const uint64_t xcr0 = read_xcr0();
  constexpr uint64_t kYmm = 0x6;   // SSE and AVX state
  constexpr uint64_t kZmm = 0xe6;  // and the mask registers, the upper halves of zmm0-15, and zmm16-31
  if ((xcr0 & kYmm) != kYmm) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if (!bit(b, 5)) return false;  // AVX2
  if (isa == IsaLevel::kAvx2) return true;
  if (isa == IsaLevel::kAvxVnni) return a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && bit(a, 4);
  const bool f = bit(b, 16), dq = bit(b, 17), bw = bit(b, 30), vl = bit(b, 31), vnni = bit(c, 11);
  return (xcr0 & kZmm) == kZmm && f && dq && bw && vl && vnni;
}

#endif

}  // namespace

const char* isa_name(IsaLevel isa) {
  switch (isa) {
    case IsaLevel::kScalar: return "scalar";
    case IsaLevel::kAvx2: return "avx2";
    case IsaLevel::kAvxVnni: return "avxvnni";
    case IsaLevel::kAvx512: return "avx512";
    case IsaLevel::kNeon: return "neon";
  }
  return "scalar";
}

std::optional<IsaLevel> isa_from_name(std::string_view name) {
  if (name == "generic") return IsaLevel::kScalar;
  for (int i = 0; i < kIsaLevelCount; ++i) {
    if (name == isa_name(static_cast<IsaLevel>(i))) return static_cast<IsaLevel>(i);
  }
  return std::nullopt;
}

bool isa_supported(IsaLevel isa) {
  if (isa == IsaLevel::kScalar) return true;
#if defined(__x86_64__)
  if (isa == IsaLevel::kAvx2 || isa == IsaLevel::kAvxVnni || isa == IsaLevel::kAvx512) return x86_has(isa);
#elif defined(__aarch64__)
  if (isa == IsaLevel::kNeon) {
    const unsigned long caps = getauxval(AT_HWCAP);
    return (caps & HWCAP_ASIMDDP) != 0 && (caps & HWCAP_ASIMDHP) != 0;
  }
#endif
  return false;
}

}  // namespace minfer
