#include "base/cpu_info.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace minfer {
namespace {

TEST(CpuInfo, NamesRoundTrip) {
  for (int i = 0; i < kIsaLevelCount; ++i) {
    const auto isa = static_cast<IsaLevel>(i);
    EXPECT_EQ(isa_from_name(isa_name(isa)), isa);
  }
  EXPECT_EQ(isa_from_name("generic"), IsaLevel::kScalar);
  EXPECT_FALSE(isa_from_name("").has_value());
  EXPECT_FALSE(isa_from_name("avx1024").has_value());
}

TEST(CpuInfo, ScalarAlwaysRuns) { EXPECT_TRUE(isa_supported(IsaLevel::kScalar)); }

// Linux hides a flag when it does not save the registers, so its list is an independent answer.
TEST(CpuInfo, AgreesWithTheKernel) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "no x86 program (an emulator shows the file of the machine below it)";
#endif
  std::ifstream in("/proc/cpuinfo");
  std::string line, flags;
  while (std::getline(in, line)) {
    if (line.rfind("flags", 0) == 0) {
      flags = line + " ";
      break;
    }
  }
  if (flags.empty()) GTEST_SKIP() << "no x86 flags in /proc/cpuinfo";
  auto has = [&](const char* f) { return flags.find(std::string(" ") + f + " ") != std::string::npos; };
  const bool avx2 = has("avx2") && has("fma") && has("f16c");
  EXPECT_EQ(isa_supported(IsaLevel::kAvx2), avx2);
  EXPECT_EQ(isa_supported(IsaLevel::kAvxVnni), avx2 && has("avx_vnni"));
  EXPECT_EQ(isa_supported(IsaLevel::kAvx512),
            avx2 && has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl") && has("avx512_vnni"));
  EXPECT_FALSE(isa_supported(IsaLevel::kNeon));
}

}  // namespace
}  // namespace minfer
