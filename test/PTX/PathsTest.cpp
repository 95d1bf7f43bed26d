// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which edges are said to order accesses.

#include "Paths.h"
#include "Machine.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace ptx;

namespace {

/// What is kept of the last one of some launches of a kernel, whose body begins
/// in line 8.
std::string pathsOf(const std::string &body, uint32_t blocks = 1,
                    unsigned launches = 1, uint32_t threads = 64) {
  Memory memory;
  auto program = readProgram(R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 out) {
  .reg .pred %p<9>; .reg .b32 %r<29>; .reg .b64 %rd<9>;
  .shared .align 1024 .b8 tile[1024];
  mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; xor.b32 %r2, %r1, 128; xor.b32 %r3, %r1, 4;
)" + body + "  ret;\n}\n");
  Launch launch;
  launch.kernel = program->kernels[0].get();
  launch.grid = {blocks, 1, 1};
  launch.threads = {threads, 1, 1};
  launch.isDependent = true;
  launch.findsUnwritten = false;
  const uint64_t out = memory.allocate(4096);
  launch.parameters.resize(8);
  std::memcpy(launch.parameters.data(), &out, 8);
  std::string json;
  for (unsigned i = 0; i < launches; ++i) {
    Paths paths(*launch.kernel);
    runKernel(launch, memory, &paths);
    json = paths.json();
  }
  return json;
}

/// What is said of the accesses in two lines.
std::string pairOf(int line, int other, const std::string &paths,
                   const std::string &told) {
  return R"({"kernel": "test", "line": )" + std::to_string(line) +
         ", \"other\": " + std::to_string(other) + ", \"paths\": [" + paths +
         "], \"told\": [" + told + "]}\n";
}

} // namespace

TEST(Paths, NamesTheFirstBarrier) {
  std::string found = pathsOf("  mov.u32 %r4, tile; add.u32 %r1, %r1, %r4; "
                              "add.u32 %r2, %r2, %r4;\n"
                              "  st.shared.u32 [%r1], %r0;\n"
                              "  bar.sync 0;\n"
                              "  bar.sync 0;\n"
                              "  ld.shared.u32 %r5, [%r2];\n");
  EXPECT_NE(found.find(pairOf(9, 12, R"(["10"])", R"("10", "11")")),
            std::string::npos)
      << found;
}

TEST(Paths, NamesEachEdgeOfAPath) {
  std::string found =
      pathsOf("  mov.u32 %r4, tile; add.u32 %r1, %r1, %r4; "
              "add.u32 %r2, %r2, %r4;\n"
              "  cp.async.ca.shared.global [%r1], [0], 4, 0;\n"
              "  cp.async.commit_group; cp.async.wait_group 0;\n"
              "  bar.sync 0;\n"
              "  ld.shared.u32 %r5, [%r2];\n");
  EXPECT_NE(found.find(pairOf(9, 12, R"(["10", "10.1", "11"])", R"("11")")),
            std::string::npos)
      << found;
}

TEST(Paths, NamesMeetingsOfLanes) {
  std::string found = pathsOf("  mov.u32 %r4, tile; add.u32 %r1, %r1, %r4; "
                              "add.u32 %r3, %r3, %r4;\n"
                              "  st.shared.u32 [%r1], %r0;\n"
                              "  bar.warp.sync -1;\n"
                              "  ld.shared.u32 %r5, [%r3];\n");
  EXPECT_NE(found.find(pairOf(9, 11, R"(["10"])", R"("10")")),
            std::string::npos)
      << found;
}

TEST(Paths, CountsWhatRuns) {
  std::string found = pathsOf("  @%p0 bar.sync 0; setp.eq.u32 %p1, %r0, 0;\n");
  EXPECT_NE(found.find(R"("8.1": 2)"), std::string::npos) << found;
}

TEST(Paths, NamesWhatTellsTheSame) {
  std::string found = pathsOf("  mov.u32 %r4, tile; add.u32 %r1, %r1, %r4;\n"
                              "  st.shared.u32 [%r1], %r0;\n"
                              "  bar.sync 0;\n"
                              "  bar.warp.sync -1;\n"
                              "  bar.sync 0;\n");
  // What the first barrier tells, lanes of a warp hear again at their own, and
  // all at the second one; behind that is the end of the launch alone.
  EXPECT_NE(found.find(R"("10": ["launch", "11", "12"])"), std::string::npos)
      << found;
  EXPECT_NE(found.find(R"("12": ["launch"])"), std::string::npos) << found;
}

TEST(Paths, NamesEdgesBetweenBlocks) {
  std::string found = pathsOf(
      "  ld.param.u64 %rd0, [out]; mov.u32 %r4, %ctaid.x; "
      "setp.eq.u32 %p0, %r4, 0; setp.ne.u32 %p1, %r0, 0; @%p1 bra END;\n"
      "  @%p0 st.global.u32 [%rd0], %r0;\n"
      "  fence.acq_rel.gpu;\n"
      "  atom.global.relaxed.gpu.add.u32 %r5, [%rd0+64], 1;\n"
      "  fence.acq_rel.gpu;\n"
      "  @!%p0 ld.global.u32 %r6, [%rd0];\n"
      "END:\n",
      /*blocks=*/2);
  EXPECT_NE(found.find(pairOf(9, 13, R"(["10", "11", "12"])", R"("12")")),
            std::string::npos)
      << found;
}

TEST(Paths, NamesBarriersOverGlobalMemory) {
  std::string found =
      pathsOf("  ld.param.u64 %rd0, [out]; cvt.u64.u32 %rd1, %r1; "
              "cvt.u64.u32 %rd2, %r2; add.u64 %rd1, %rd1, %rd0; "
              "add.u64 %rd2, %rd2, %rd0;\n"
              "  st.global.u32 [%rd1], %r0;\n"
              "  bar.sync 0;\n"
              "  ld.global.u32 %r5, [%rd2];\n");
  EXPECT_NE(found.find(pairOf(9, 11, R"(["10"])", R"("10")")),
            std::string::npos)
      << found;
}

TEST(Paths, NamesTheWaitForTheLaunchAhead) {
  std::string found =
      pathsOf("  ld.param.u64 %rd0, [out]; cvt.u64.u32 %rd1, %r1; "
              "add.u64 %rd1, %rd1, %rd0;\n"
              "  griddepcontrol.wait;\n"
              "  st.global.u32 [%rd1], %r0;\n"
              "  griddepcontrol.launch_dependents;\n",
              /*blocks=*/1, /*launches=*/2);
  EXPECT_NE(found.find(pairOf(0, 10, R"(["9"])", R"("9")")), std::string::npos)
      << found;
  EXPECT_NE(found.find(pairOf(0, 0, R"(["11"])", R"("launch")")),
            std::string::npos)
      << found;
}

TEST(Paths, NamesFencesOfRegisters) {
  std::string found = pathsOf(
      "  mov.u32 %r4, tile; shr.u32 %r4, %r4, 4; cvt.u64.u32 %rd2, %r4; "
      "or.b64 %rd2, %rd2, 0x4000004000000000;\n"
      "  and.b32 %r20, %r0, 0;\n"
      "  wgmma.fence.sync.aligned;\n"
      "  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r20, %r21, "
      "%r22, %r23}, {%r11, %r12, %r12, %r11}, %rd2, 1, 1, 1, 0;\n"
      "  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
      /*blocks=*/1, /*launches=*/1, /*threads=*/128);
  EXPECT_NE(found.find(pairOf(9, 11, R"(["10"])", "")), std::string::npos)
      << found;
}
