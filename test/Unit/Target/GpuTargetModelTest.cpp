// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GPUs in the table of targets: what sets them apart, and that ptxas accepts an
// instruction of each family exactly where the table says so.
#include "gdn/Target/CudaProgram.h"
#include "gdn/Target/Ptxas.h"

#include <gmock/gmock.h>

using namespace gdn;

namespace {

TargetModel get(llvm::StringRef name) {
  return llvm::cantFail(TargetModel::get(name));
}

TEST(GpuTargetModel, NamesAndLlvm) {
  EXPECT_THAT(TargetModel::knownGpuNames(),
              testing::ElementsAre("sm_80", "sm_86", "sm_89", "sm_90a",
                                   "sm_100a", "sm_103a", "sm_120a"));
  for (llvm::StringRef name : TargetModel::knownGpuNames()) {
    TargetModel target = get(name);
    EXPECT_EQ(target.getKind(), TargetKind::nvptx);
    EXPECT_EQ(target.getLlvmCpu(), name);
    EXPECT_EQ(target.getLlvmFeatures(), "+ptx90");
    EXPECT_EQ(target.getLlvmTriple(), "nvptx64-nvidia-cuda");
    EXPECT_TRUE(target.getRequiredFeatures().empty());
    EXPECT_EQ(target.runsOnLaterChips(), !name.ends_with("a"));
  }
}

TEST(GpuTargetModel, Sizes) {
  TargetModel a100 = get("sm_80"), ada = get("sm_89"), hopper = get("sm_90a"),
              blackwell = get("sm_120a");
  EXPECT_EQ(a100.getSharedBytesPerBlock(), 166912u);
  EXPECT_EQ(a100.getSharedBytesPerSm(), 167936u);
  EXPECT_EQ(ada.getSharedBytesPerBlock(), 101376u);
  EXPECT_EQ(ada.getMaxBlocksPerSm(), 24u);
  EXPECT_EQ(hopper.getSharedBytesPerBlock(), 232448u);
  EXPECT_EQ(hopper.getMaxClusterBlocks(), 8u);
  EXPECT_EQ(a100.getMaxClusterBlocks(), 1u);
  EXPECT_EQ(hopper.getBlocksAhead(), 128);
}

// Elsewhere numbers of bytes by permutations spill.
TEST(GpuTargetModel, RegistersForPermutations) {
  for (llvm::StringRef name : TargetModel::knownGpuNames()) {
    EXPECT_EQ(get(name).getBytesRegisters(), 96u) << name.str();
    EXPECT_EQ(get(name).getNumbersRegisters(), name == "sm_90a" ? 128u : 256u)
        << name.str();
  }
}

TEST(GpuTargetModel, ACpuHasNothingOfAGpu) {
  TargetModel cpu = get("x86-64-v4");
  EXPECT_EQ(cpu.getKind(), TargetKind::cpu);
  EXPECT_FALSE(cpu.hasMmaSync());
  EXPECT_FALSE(cpu.hasClusters());
  EXPECT_EQ(cpu.getSharedBytesPerBlock(), 0u);
  EXPECT_EQ(cpu.getMaxThreadsPerBlock(), 0u);
  EXPECT_EQ(cpu.getBlocksAhead(), 0);
}

TEST(GpuTargetModel, NewerChipsRankHigher) {
  unsigned last = 0;
  for (llvm::StringRef name : TargetModel::knownGpuNames()) {
    EXPECT_GT(get(name).getRank(), last) << name.str();
    last = get(name).getRank();
  }
}

/// An instruction that needs a capability.
struct Sample {
  const char *name;
  bool (TargetModel::*has)() const;
  const char *ptx;
};

class PtxasAgrees : public testing::TestWithParam<Sample> {};

TEST_P(PtxasAgrees, OnEveryTarget) {
  std::optional<std::string> path = findCudaProgram("ptxas");
  if (!path)
    GTEST_SKIP() << "no ptxas; tools/scripts/setup.sh installs it";
  llvm::Expected<Ptxas> ptxas = Ptxas::open(*path);
  ASSERT_TRUE(bool(ptxas)) << llvm::toString(ptxas.takeError());
  for (llvm::StringRef name : TargetModel::knownGpuNames()) {
    TargetModel target = get(name);
    std::string text = ".version 9.0\n.target " + name.str() +
                       "\n.address_size 64\n.visible .entry k() {\n"
                       ".shared .align 128 .b8 s[256];\n" +
                       GetParam().ptx + "\nret;\n}\n";
    llvm::Expected<Cubin> cubin = ptxas->assemble(text, target);
    EXPECT_EQ(bool(cubin), (target.*GetParam().has)())
        << name.str() << ": "
        << (cubin ? "accepted" : llvm::toString(cubin.takeError()));
    if (!cubin)
      llvm::consumeError(cubin.takeError());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Instructions, PtxasAgrees,
    testing::Values(
        Sample{"wgmma", &TargetModel::hasWgmma, "wgmma.fence.sync.aligned;"},
        Sample{"stmatrix", &TargetModel::hasStmatrix,
               ".reg .b32 r; mov.u32 r,0;"
               "stmatrix.sync.aligned.m8n8.x1.shared.b16 [s],{r};"},
        Sample{"tma", &TargetModel::hasTma,
               ".reg .b64 a; mov.u64 a,0;"
               "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [a,{0}];"},
        Sample{"clusters", &TargetModel::hasClusters,
               "barrier.cluster.arrive.aligned;"},
        Sample{"setmaxnreg", &TargetModel::hasSetMaxRegister,
               "setmaxnreg.inc.sync.aligned.u32 128;"},
        Sample{"dependentLaunch", &TargetModel::hasDependentLaunch,
               "griddepcontrol.wait;"},
        Sample{"cpAsync", &TargetModel::hasCpAsync,
               ".reg .b64 a; mov.u64 a,0;"
               "cp.async.cg.shared.global [s],[a],16;"},
        Sample{"mmaSync", &TargetModel::hasMmaSync,
               ".reg .b32 a; .reg .f32 d; mov.u32 a,0; mov.f32 d,0f00000000;"
               "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{d,d,d,d},{a,a,a,a},{a,a},{d,d,d,d};"},
        Sample{"packedF32", &TargetModel::hasPackedF32,
               ".reg .b64 a; mov.u64 a,0; fma.rn.f32x2 a,a,a,a;"}),
    [](const auto &sample) { return std::string(sample.param.name); });

} // namespace
