// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which edges are said to order accesses.

#include "Paths.h"
#include "Machine.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace ptx;

namespace {

/// What is kept of a kernel of 64 threads, whose body begins in line 8.
std::string pathsOf(const std::string &body) {
  Memory memory;
  auto program = readProgram(R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 out) {
  .reg .pred %p<9>; .reg .b32 %r<9>;
  .shared .align 16 .b8 tile[1024];
  mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; xor.b32 %r2, %r1, 128; xor.b32 %r3, %r1, 4;
)" + body + "  ret;\n}\n");
  Launch launch;
  launch.kernel = program->kernels[0].get();
  launch.threads = {64, 1, 1};
  launch.parameters.resize(8);
  Paths paths(*launch.kernel);
  runKernel(launch, memory, &paths);
  return paths.json();
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
