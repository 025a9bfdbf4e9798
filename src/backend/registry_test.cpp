#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backend/backend.h"
#include "base/cpu_info.h"

namespace minfer {
namespace {

TEST(Registry, ScalarIsAlwaysThereAndLast) {
  const auto isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.back(), "scalar");
  EXPECT_EQ(std::set<std::string>(isas.begin(), isas.end()).size(), isas.size());
}

TEST(Registry, TheBestIsTheDefaultAndEachCanBeForced) {
  const auto isas = available_isas();
  EXPECT_STREQ((*make_backend({}))->isa(), isas.front().c_str());
  for (const std::string& isa : isas) {
    auto backend = make_backend({"cpu", isa});
    ASSERT_TRUE(backend.ok());
    EXPECT_STREQ((*backend)->isa(), isa.c_str());
    EXPECT_STREQ((*backend)->name(), "cpu");
    // The forced one really runs: its kernels and the reference's, nothing else.
    for (int i = 0; i < kOpCount; ++i) {
      for (const Kernel& k : (*backend)->kernels(static_cast<Op>(i))) {
        EXPECT_TRUE(k.isa == isa || std::string(k.isa) == "ref") << op_info(static_cast<Op>(i)).name << ": " << k.isa;
      }
    }
  }
}

TEST(Registry, EveryPrimitiveHasAKernelOnEveryBackend) {
  for (const char* device : {"ref", "cpu"}) {
    auto backend = make_backend({device, ""});
    ASSERT_TRUE(backend.ok());
    for (int i = 0; i < kOpCount; ++i) {
      const Op op = static_cast<Op>(i);
      if (op_info(op).composite) continue;
      EXPECT_FALSE((*backend)->kernels(op).empty()) << device << " " << op_info(op).name;
    }
  }
}

TEST(Registry, UnknownNamesListTheValidOnes) {
  auto device = make_backend({"gpu", ""});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(device.error().message.find("'gpu'; there are: cpu, ref"), std::string::npos) << device.error().message;

  auto isa = make_backend({"cpu", "mmx"});
  ASSERT_FALSE(isa.ok());
  EXPECT_EQ(isa.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(isa.error().message.find("scalar"), std::string::npos) << isa.error().message;

  EXPECT_FALSE(make_backend({"ref", "avx2"}).ok());
}

TEST(Registry, AnInstructionSetTheProcessorLacksIsAnError) {
  const auto here = available_isas();
  for (int i = 0; i < kIsaLevelCount; ++i) {
    const std::string isa = isa_name(static_cast<IsaLevel>(i));
    if (std::find(here.begin(), here.end(), isa) != here.end()) continue;
    auto backend = make_backend({"cpu", isa});
    ASSERT_FALSE(backend.ok());
    EXPECT_EQ(backend.error().code, ErrorCode::kUnsupported);
    for (const std::string& name : here)
      EXPECT_NE(backend.error().message.find(name), std::string::npos) << backend.error().message;
  }
}

}  // namespace
}  // namespace minfer
