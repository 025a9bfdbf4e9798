// Which vector instruction sets this processor, and its operating system, can really run.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace minfer {

// The instruction sets a cpu kernel is written for. Each has a folder under backend/cpu/ compiled with its own flags.
enum class IsaLevel : uint8_t {
  kScalar,   // plain C++ at the compiler's baseline
  kAvx2,     // AVX2, FMA and F16C
  kAvxVnni,  // AVX-VNNI (the VEX encoding), on top of kAvx2
  kAvx512,   // AVX-512 F, BW, DQ, VL and VNNI, on top of kAvx2
  kNeon,     // Armv8.2 with dotprod and fp16
};
inline constexpr int kIsaLevelCount = 5;

const char* isa_name(IsaLevel isa);                            // "scalar", "avx2", "avxvnni", "avx512", "neon"
std::optional<IsaLevel> isa_from_name(std::string_view name);  // the names above; "generic" means "scalar"

// Whether the processor has every instruction of the level and the system saves the registers it needs.
bool isa_supported(IsaLevel isa);

}  // namespace minfer
