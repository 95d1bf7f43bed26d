// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of targets and its capabilities.
#include "gdn/Target/TargetModel.h"

#include <gmock/gmock.h>

using namespace gdn;

namespace {

TargetModel get(llvm::StringRef name) {
  return llvm::cantFail(TargetModel::get(name));
}

TEST(TargetModel, Levels) {
  TargetModel v3 = get("x86-64-v3"), v4 = get("x86-64-v4");
  EXPECT_EQ(v3.getVectorBits(), 256u);
  EXPECT_EQ(v3.getF32Lanes(), 8u);
  EXPECT_EQ(v4.getF32Lanes(), 16u);
  EXPECT_GT(v4.getRank(), v3.getRank());
}

TEST(TargetModel, ACpuIsItsLevelScheduledForIt) {
  TargetModel cpu = get("sapphirerapids");
  EXPECT_EQ(cpu.getLlvmCpu(), "x86-64-v4");
  EXPECT_EQ(cpu.getLlvmTuneCpu(), "sapphirerapids");
  EXPECT_THAT(cpu.getRequiredFeatures(), testing::ElementsAre("x86-64-v4"));
}

TEST(TargetModel, EveryKnownNameIsATarget) {
  for (llvm::StringRef name : TargetModel::knownNames()) {
    llvm::Expected<TargetModel> target = TargetModel::get(name);
    if (!target && name == "native") { // the machine may be too old
      llvm::consumeError(target.takeError());
      continue;
    }
    ASSERT_TRUE(bool(target)) << name.str();
    EXPECT_EQ(target->getName(), name);
  }
}

TEST(TargetModel, UnknownNameListsTheKnown) {
  llvm::Expected<TargetModel> target = TargetModel::get("sm_90");
  ASSERT_FALSE(bool(target));
  EXPECT_EQ(llvm::toString(target.takeError()),
            "unknown target 'sm_90'; known targets: native, x86-64-v3, "
            "x86-64-v4, haswell, skylake, alderlake, znver2, znver3, "
            "skylake-avx512, cascadelake, icelake-server, sapphirerapids, "
            "graniterapids, znver4, znver5, sm_80, sm_86, sm_89, sm_90a, "
            "sm_100a, sm_103a, sm_120a");
}

} // namespace
