// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small programs in PTX over global memory, of one launch or of several, and
// what the machine is to say of them.

#ifndef GDN_TEST_PTX_GLOBALLITMUS_H
#define GDN_TEST_PTX_GLOBALLITMUS_H

#include "Machine.h"

#include <cstring>
#include <gtest/gtest.h>

namespace ptx::litmus {

/// The kernels of launches that follow each other, what they are told ("" if
/// nothing), and how they are started.
struct Litmus {
  const char *name;
  std::vector<std::string> launches;
  const char *told;
  uint32_t blocks = 1, threads = 64, cluster = 1;
  /// Whether launches but the first may begin before the one ahead has ended.
  bool areDependent = false;
};

/// Part of the test's name, which must be the same in each build.
inline std::ostream &operator<<(std::ostream &out, const Litmus &litmus) {
  return out << litmus.name;
}

/// %r0 is the thread, %r1 the tile, %r2 two barriers, %r3 the block; %rd0 is
/// memory, %rd1 the thread's word there, %rd2 that of the same lane of the
/// other warp, %rd3 that of the lane beside, %rd4 that of the same thread of
/// the other block, %rd5 a flag; %p0 holds in warp 0, %p1 in its first lane,
/// %p3 in block 0.
inline const std::string kPrologue = R"(
  .reg .pred %p<9>;
  .reg .b16 %h<9>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<12>;
  .shared .align 1024 .b8 tile[4096];
  .shared .align 16 .b8 bars[64];
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mov.u32 %r2, bars;
  mov.u32 %r3, %ctaid.x;
  shl.b32 %r4, %r0, 2;
  shl.b32 %r5, %r3, 9;
  add.s32 %r4, %r4, %r5;
  cvt.u64.u32 %rd1, %r4;
  xor.b64 %rd2, %rd1, 128;
  xor.b64 %rd3, %rd1, 4;
  xor.b64 %rd4, %rd1, 512;
  add.s64 %rd1, %rd1, %rd0;
  add.s64 %rd2, %rd2, %rd0;
  add.s64 %rd3, %rd3, %rd0;
  add.s64 %rd4, %rd4, %rd0;
  add.s64 %rd5, %rd0, 4096;
  setp.lt.u32 %p0, %r0, 32;
  setp.eq.u32 %p1, %r0, 0;
  setp.eq.u32 %p3, %r3, 0;
)";

inline const std::string kWrite = "  st.global.u32 [%rd1], %r0;\n",
                         kReadOwn = "  ld.global.u32 %r6, [%rd1];\n",
                         kReadOther = "  ld.global.u32 %r6, [%rd2];\n",
                         kReadNext = "  ld.global.u32 %r6, [%rd3];\n",
                         kReadBlock = "  ld.global.u32 %r6, [%rd4];\n",
                         kMeet = "  bar.sync 0;\n",
                         kMeetWarp = "  bar.warp.sync -1;\n",
                         kShuffle =
                             "  shfl.sync.bfly.b32 %r7, %r6, 1, 31, -1;\n",
                         kFence = "  fence.acq_rel.gpu;\n",
                         kAwait = "  griddepcontrol.wait;\n",
                         kRelease = "  griddepcontrol.launch_dependents;\n";

/// `first` in warp 0, or in block 0, then `second` in the other.
inline std::string roles(const std::string &first, const std::string &second,
                         const std::string &isFirst = "%p0") {
  return "  @!" + isFirst + " bra OTHER;\n" + first + "  bra END;\nOTHER:\n" +
         second + "END:\n";
}
inline std::string blocks(const std::string &first, const std::string &second) {
  return roles(first, second, "%p3");
}

/// Waits until the flag is `value`, by loads with `order`.
inline std::string await(const std::string &order, int value = 1) {
  const std::string label = "AWAIT" + std::to_string(value);
  return label + ":\n  ld." + order + ".global.u32 %r8, [%rd5];\n" +
         "  setp.lt.u32 %p8, %r8, " + std::to_string(value) + ";\n  @%p8 bra " +
         label + ";\n";
}
/// Sets it by a store with `order`, or counts it up.
inline std::string set(const std::string &order, int value = 1) {
  return "  st." + order + ".global.u32 [%rd5], " + std::to_string(value) +
         ";\n";
}
inline std::string count(const std::string &order) {
  return "  red." + order + ".global.add.u32 [%rd5], 1;\n";
}

inline const char *const kGlobal = "over global memory",
                         *const kNoBarrier = "no barrier behind it",
                         *const kNoMeeting = "no bar.warp.sync",
                         *const kNoAtomic =
                             "no fence and an atomic of a counter",
                         *const kNoProxy = "no fence.proxy.async does",
                         *const kNoAwait = "no griddepcontrol.wait",
                         *const kConstant =
                             "ld.global.nc is for what nobody writes",
                         *const kNoProductFence = "no wgmma.fence";

/// What the machine says of a program under a schedule.
inline std::string run(const Litmus &litmus, uint64_t seed) {
  Memory memory;
  uint64_t out = memory.allocate(8192);
  std::memset(reinterpret_cast<void *>(out), 0, 8192);
  std::string text = ".version 9.0\n.target sm_90a\n.address_size 64\n";
  for (size_t i = 0; i < litmus.launches.size(); ++i)
    text += ".visible .entry test" + std::to_string(i) +
            "(.param .u64 out) {\n" + kPrologue + litmus.launches[i] +
            "  ret;\n}\n";
  std::unique_ptr<Program> program;
  try {
    program = readProgram(text);
    for (size_t i = 0; i < litmus.launches.size(); ++i) {
      Launch launch;
      launch.kernel = program->kernels[i].get();
      launch.grid = {litmus.blocks, 1, 1};
      launch.threads = {litmus.threads, 1, 1};
      launch.cluster = litmus.cluster;
      launch.isDependent = i > 0 && litmus.areDependent;
      launch.findsUnwritten = false;
      launch.seed = seed;
      launch.parameters.resize(8);
      std::memcpy(launch.parameters.data(), &out, 8);
      runKernel(launch, memory);
    }
  } catch (const Fault &fault) {
    return fault.what();
  }
  return "";
}

/// Whether a program is told what it should be, under each schedule.
inline void check(const Litmus &litmus) {
  std::string text = run(litmus, 0);
  if (!*litmus.told)
    EXPECT_EQ(text, "");
  else
    EXPECT_NE(text.find(litmus.told), std::string::npos)
        << "told: " << text << "expected: " << litmus.told;
  // Other schedules may end in other faults, but are right or wrong as well.
  for (uint64_t seed = 1; seed < 5; ++seed) {
    text = run(litmus, seed);
    EXPECT_EQ(text.empty(), !*litmus.told) << "seed " << seed << ": " << text;
  }
}

inline std::string nameOf(const ::testing::TestParamInfo<Litmus> &info) {
  return info.param.name;
}

} // namespace ptx::litmus

#endif // GDN_TEST_PTX_GLOBALLITMUS_H
