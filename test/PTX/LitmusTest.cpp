// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What orders accesses to shared memory and what does not: small programs that
// pass a message through each mechanism, right and with an edge left out.

#include "Machine.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace ptx;

namespace {

/// A program, what it is told ("" if nothing), and how it is started.
struct Litmus {
  const char *name;
  std::string body;
  const char *told;
  uint32_t threads = 64, cluster = 1;
};

/// Part of the test's name, which must be the same in each build.
std::ostream &operator<<(std::ostream &out, const Litmus &litmus) {
  return out << litmus.name;
}

/// %r0 is the thread, %r1 the tile, %r2 two barriers, %r3 the thread's word of
/// the tile, %r4 that of the same lane of the other warp, %r5 that of the lane
/// beside; %p0 holds in warp 0, %p1 in its first lane, %p2 in the first lane of
/// warp 1; %rd0 is memory.
const std::string kPrologue = R"(
.version 9.0
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 out) {
  .reg .pred %p<9>;
  .reg .b16 %h<9>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<9>;
  .shared .align 1024 .b8 tile[4096];
  .shared .align 16 .b8 bars[64];
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mov.u32 %r2, bars;
  shl.b32 %r3, %r0, 2;
  xor.b32 %r4, %r3, 128;
  xor.b32 %r5, %r3, 4;
  add.s32 %r3, %r3, %r1;
  add.s32 %r4, %r4, %r1;
  add.s32 %r5, %r5, %r1;
  setp.lt.u32 %p0, %r0, 32;
  setp.eq.u32 %p1, %r0, 0;
  setp.eq.u32 %p2, %r0, 32;
)";

const std::string kWrite = "  st.shared.u32 [%r3], %r0;\n",
                  kReadOther = "  ld.shared.u32 %r6, [%r4];\n",
                  kReadNext = "  ld.shared.u32 %r6, [%r5];\n",
                  kMeet = "  bar.sync 0;\n",
                  kMeetWarp = "  bar.warp.sync -1;\n",
                  kShuffle = "  shfl.sync.bfly.b32 %r7, %r6, 1, 31, -1;\n",
                  kUse = "  add.s32 %r7, %r6, 1;\n",
                  kFence = "  fence.proxy.async.shared::cta;\n";

/// Two barriers of one arrival, ready for all and for copies.
const std::string kInit = "  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\n"
                          "  @%p1 mbarrier.init.shared::cta.b64 [%r2+8], 1;\n",
                  kInitFence = "  fence.mbarrier_init.release.cluster;\n",
                  kReady = kInit + kInitFence + kMeet;

std::string wait(int barrier, int parity = 0) {
  const std::string label =
      "AGAIN" + std::to_string(barrier) + std::to_string(parity);
  return "{\n" + label +
         ":\n  mbarrier.try_wait.parity.shared::cta.b64 %p8, "
         "[%r2+" +
         std::to_string(8 * barrier) + "], " + std::to_string(parity) +
         ";\n  @!%p8 bra " + label + ";\n}\n";
}

/// `first` in warp 0, then `second` in warp 1.
std::string roles(const std::string &first, const std::string &second) {
  return "  @!%p0 bra OTHER;\n" + first + "  bra END;\nOTHER:\n" + second +
         "END:\n";
}

/// The first lane of warp 0 copies 16 bytes of memory to `to`.
std::string copy(int barrier, int to, int bytes = 16) {
  const std::string bar = "[%r2+" + std::to_string(8 * barrier) + "]",
                    count = std::to_string(bytes);
  return "  @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, " + bar + ", " +
         count +
         ";\n  @%p1 cp.async.bulk.shared::cluster.global."
         "mbarrier::complete_tx::bytes [%r1+" +
         std::to_string(to) + "], [%rd0], " + count + ", " + bar + ";\n";
}

const std::string kStore = "  @%p1 cp.async.bulk.global.shared::cta.bulk_group "
                           "[%rd0], [%r1], 128;\n",
                  kCommitStore = "  @%p1 cp.async.bulk.commit_group;\n",
                  kWaitStore = "  @%p1 cp.async.bulk.wait_group.read 0;\n";

const std::string kLaneCopy =
                      "  shl.b32 %r8, %r0, 4;\n"
                      "  add.s32 %r8, %r8, %r1;\n"
                      "  cp.async.cg.shared.global [%r8], [%rd0], 16;\n",
                  kCommit = "  cp.async.commit_group;\n",
                  kWait = "  cp.async.wait_group 0;\n",
                  kReadCopy = "  ld.shared.u32 %r6, [%r8];\n",
                  kReadCopyOfOther = "  xor.b32 %r9, %r8, 512;\n"
                                     "  ld.shared.u32 %r6, [%r9];\n";

/// All 128 threads write the tile that a product of theirs reads.
const std::string kWriteTile = "  shl.b32 %r8, %r0, 3;\n"
                               "  add.s32 %r8, %r8, %r1;\n"
                               "  st.shared.v2.u32 [%r8], {%r0, %r0};\n",
                  kDescribe = R"(
  shr.u32 %r13, %r1, 4;
  cvt.u64.u32 %rd2, %r13;
  or.b64 %rd2, %rd2, 0x4000004000000000;
)",
                  kRegisterFence = "  wgmma.fence.sync.aligned;\n",
                  kMultiplyAgain = R"(
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
    {%r20, %r21, %r22, %r23}, {%r11, %r12, %r12, %r11}, %rd2, 0, 1, 1, 0;
)",
                  kMultiply = kDescribe + kRegisterFence + kMultiplyAgain,
                  kCommitProduct = "  wgmma.commit_group.sync.aligned;\n",
                  kWaitProduct = "  wgmma.wait_group.sync.aligned 0;\n",
                  kOverwrite = kMeet + kWriteTile;

/// The two blocks of a cluster: the first one's word, and the other's address.
const std::string kClusterWrite = "  mov.u32 %r10, %cluster_ctarank;\n"
                                  "  xor.b32 %r10, %r10, 1;\n" +
                                  kWrite,
                  kClusterRead = "  mapa.shared::cluster.u32 %r11, %r3, %r10;\n"
                                 "  ld.shared::cluster.u32 %r6, [%r11];\n",
                  kClusterMeet = "  barrier.cluster.arrive.release;\n"
                                 "  barrier.cluster.wait.acquire;\n";

const char *const kNoBarrier = "no barrier behind it",
                  *const kNoFence = "no fence.proxy.async does",
                  *const kNoMeeting = "no bar.warp.sync",
                  *const kNoCopyWait = "no cp.async.wait_group",
                  *const kNoPhase = "no wait for the end of the phase",
                  *const kNoProductWait = "no wgmma.wait_group",
                  *const kNotArrived = "told before the value had arrived",
                  *const kNoStoreWait = "no cp.async.bulk.wait_group",
                  *const kUnwritten = "nobody has written";

std::vector<Litmus> litmus() {
  const std::string arrive =
                        "  @%p1 mbarrier.arrive.shared::cta.b64 _, [%r2];\n",
                    relaxed = "  @%p1 mbarrier.arrive.relaxed.cta.shared::cta."
                              "b64 _, [%r2];\n",
                    arriveBack =
                        "  @%p2 mbarrier.arrive.shared::cta.b64 _, [%r2+8];\n";
  // Each lane arrives behind a loop with a branch. The end of the loop stands
  // ahead of what leads to it, as LLVM may place it.
  const std::string arriveEach = R"(
  @%p1 mbarrier.init.shared::cta.b64 [%r2+16], 32;
  bar.sync 0;
)",
                    loop = R"(
  mov.u32 %r14, 0;
  setp.lt.u32 %p3, %r0, 16;
  bra BODY;
LATCH:
  add.u32 %r14, %r14, 1;
  setp.eq.u32 %p7, %r14, 2;
  @!%p7 bra BODY;
  ld.shared.u32 %r6, [%r3];
  add.s32 %r7, %r6, 1;
  mbarrier.arrive.shared::cta.b64 _, [%r2+16];
  bra END;
BODY:
  st.shared.u32 [%r3], %r0;
  @%p3 bra LATCH;
  add.s32 %r7, %r0, 1;
  bra LATCH;
OTHER:
)";
  return {
      // Barriers of the block.
      {"barrier", kWrite + kMeet + kReadOther, ""},
      {"barrier_missing", kWrite + kReadOther, kNoBarrier},
      {"barrier_before_write", kMeet + kWrite + kReadOther, kNoBarrier},
      {"barrier_for_overwriting", kWrite + kMeet + kReadOther + kMeet + kWrite,
       ""},
      {"barrier_for_overwriting_missing", kWrite + kMeet + kReadOther + kWrite,
       kNoBarrier},
      {"arrive",
       roles(kWrite + "  bar.arrive 1, 64;\n",
             "  bar.sync 1, 64;\n" + kReadOther),
       ""},
      {"arrive_before_write",
       roles("  bar.arrive 1, 64;\n" + kWrite,
             "  bar.sync 1, 64;\n" + kReadOther),
       kNoBarrier},
      {"arrive_tells_nothing_back",
       roles("  bar.arrive 1, 64;\n" + kReadOther,
             kWrite + "  bar.sync 1, 64;\n"),
       kNoBarrier},
      // Lanes of a warp.
      {"lanes", kWrite + kMeetWarp + kReadNext, ""},
      {"lanes_missing", kWrite + kReadNext, kNoMeeting},
      {"lanes_exchange_is_no_barrier", kWrite + kShuffle + kReadNext,
       kNoMeeting},
      {"lanes_exchange_what_they_read",
       kWrite + kMeetWarp + kReadNext + kShuffle + kWrite, ""},
      {"lanes_overwrite_what_others_read",
       kWrite + kMeetWarp + kReadNext + kWrite, kNoMeeting},
      {"lanes_write_halves_of_words",
       "  mul.lo.u32 %r6, %r0, 2;\n  add.s32 %r6, %r6, %r1;\n"
       "  st.shared.b16 [%r6], %h0;\n  ld.shared.b16 %h1, [%r6];\n",
       ""},
      // Barriers in shared memory.
      {"mbarrier",
       kReady + roles(kWrite + kMeetWarp + arrive, wait(0) + kReadOther), ""},
      {"mbarrier_without_wait",
       kReady + roles(kWrite + kMeetWarp + arrive, kReadOther), kNoBarrier},
      {"mbarrier_without_meeting",
       kReady + roles(kWrite + arrive, wait(0) + kReadOther), kNoBarrier},
      {"mbarrier_before_write",
       kReady + roles(arrive + kWrite, wait(0) + kReadOther), kNoBarrier},
      {"mbarrier_relaxed",
       kReady + roles(kWrite + kMeetWarp + relaxed, wait(0) + kReadOther),
       kNoBarrier},
      {"mbarrier_of_other_phase",
       kReady + roles(kWrite + kMeetWarp + arrive, wait(0, 1) + kReadOther),
       kNoBarrier},
      {"mbarrier_lanes_arrive_behind_a_loop",
       arriveEach + "  @!%p0 bra OTHER;\n" + loop + wait(2) +
           "  st.shared.u32 [%r4], %r0;\nEND:\n",
       ""},
      {"mbarrier_lanes_arrive_behind_a_loop_without_wait",
       arriveEach + "  @!%p0 bra OTHER;\n" + loop +
           "  st.shared.u32 [%r4], %r0;\nEND:\n",
       kNoBarrier},
      {"mbarrier_ring",
       kReady + roles(kWrite + kMeetWarp + arrive + wait(1) + kWrite,
                      wait(0) + kReadOther + kMeetWarp + arriveBack),
       ""},
      {"mbarrier_ring_without_wait_for_space",
       kReady + roles(kWrite + kMeetWarp + arrive + kWrite,
                      wait(0) + kReadOther + kMeetWarp + arriveBack),
       kNoBarrier},
      {"mbarrier_wait_of_one_lane",
       kReady + roles(kWrite + kMeetWarp + arrive, "  @!%p2 bra BEHIND;\n" +
                                                       wait(0) + "BEHIND:\n" +
                                                       kMeetWarp + kReadOther),
       ""},
      {"mbarrier_wait_of_one_lane_without_meeting",
       kReady +
           roles(kWrite + kMeetWarp + arrive,
                 "  @!%p2 bra BEHIND;\n" + wait(0) + "BEHIND:\n" + kReadOther),
       kNoBarrier},
      {"mbarrier_initialised_for_others", kInit + kMeet + arrive + wait(0), ""},
      {"mbarrier_initialised_without_barrier", kInit + arrive + wait(0),
       "uses what that initialises"},
      // Copies by cp.async.
      {"lane_copies", kLaneCopy + kCommit + kWait + kReadCopy, ""},
      {"lane_copies_without_wait", kLaneCopy + kCommit + kReadCopy,
       kNoCopyWait},
      {"lane_copies_without_commit", kLaneCopy + kWait + kReadCopy,
       kNoCopyWait},
      {"lane_copies_but_one_group",
       kLaneCopy + kCommit + "  cp.async.wait_group 1;\n" + kReadCopy,
       kNoCopyWait},
      {"lane_copies_of_others",
       kLaneCopy + kCommit + kWait + kMeet + kReadCopyOfOther, ""},
      {"lane_copies_of_others_barrier_first",
       kLaneCopy + kCommit + kMeet + kWait + kReadCopyOfOther, kNoCopyWait},
      {"lane_copies_over_what_is_read",
       kWrite + kMeet + kReadOther + kLaneCopy + kCommit + kWait, kNoBarrier},
      {"lane_copies_to_mbarrier",
       "  @%p1 mbarrier.init.shared::cta.b64 [%r2], 64;\n" + kMeet + kLaneCopy +
           "  cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];\n" + wait(0) +
           kReadCopyOfOther,
       ""},
      {"lane_copies_to_mbarrier_without_wait",
       "  @%p1 mbarrier.init.shared::cta.b64 [%r2], 64;\n" + kMeet + kLaneCopy +
           "  cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];\n" + kReadCopy,
       kNoCopyWait},
      // Bulk copies that tell a barrier.
      {"bulk", kReady + copy(0, 0, 256) + wait(0) + kReadOther, ""},
      {"bulk_without_wait", kReady + copy(0, 0, 256) + kReadOther, kNoPhase},
      {"bulk_waits_for_another",
       kReady + copy(0, 0, 256) + copy(1, 1024, 256) + wait(1) + kReadOther,
       kNoPhase},
      {"bulk_without_fence_of_barrier",
       kInit + kMeet + copy(0, 0, 256) + wait(0) + kReadOther,
       "uses what that initialises; no fence.mbarrier_init"},
      {"bulk_past_its_end", kReady + copy(0, 0, 240) + wait(0) + kReadOther,
       kUnwritten},
      {"bulk_twice", kReady + copy(0, 0, 256) + copy(1, 0, 256),
       "writes what that writes"},
      {"bulk_twice_in_order",
       kReady + copy(0, 0, 256) + wait(0) + copy(1, 0, 256) + wait(1), ""},
      {"bulk_over_what_was_written",
       kReady + kWrite + kFence + kMeet + copy(0, 0, 256) + wait(0), ""},
      {"bulk_over_what_was_written_without_fence",
       kReady + kWrite + kMeet + copy(0, 0, 256) + wait(0), kNoFence},
      {"bulk_over_what_is_read",
       kReady + copy(0, 0, 256) + wait(0) + kReadOther + copy(1, 0, 256),
       "a race with"},
      {"bulk_over_what_was_read",
       kReady + copy(0, 0, 256) + wait(0) + kReadOther + kUse + kMeet +
           copy(1, 0, 256) + wait(1),
       ""},
      {"bulk_over_what_was_read_and_fenced",
       kReady + copy(0, 0, 256) + wait(0) + kReadOther + kFence + kMeet +
           copy(1, 0, 256) + wait(1),
       ""},
      {"bulk_over_what_was_loaded_and_not_used",
       kReady + copy(0, 0, 256) + wait(0) + kReadOther + kMeet +
           copy(1, 0, 256) + wait(1) + kUse,
       kNotArrived},
      {"bulk_over_what_was_loaded_and_moved",
       kReady + copy(0, 0, 256) + wait(0) + kReadOther +
           "  mov.b32 %r7, %r6;\n" + kMeet + copy(1, 0, 256) + wait(1) +
           "  add.s32 %r6, %r7, 1;\n",
       kNotArrived},
      {"bulk_over_what_a_move_of_is_used",
       kReady + copy(0, 0, 256) + wait(0) + kReadOther +
           "  mov.b32 %r7, %r6;\n  add.s32 %r7, %r7, 1;\n" + kMeet +
           copy(1, 0, 256) + wait(1),
       ""},
      {"bulk_outlives_the_block", kReady + copy(0, 0, 256),
       "may have ended when its shared memory is used by a bulk copy"},
      // Bulk copies to memory.
      {"store",
       kWrite + kFence + kMeet + kStore + kCommitStore + kWaitStore + kMeet +
           kWrite,
       ""},
      {"store_without_fence",
       kWrite + kMeet + kStore + kCommitStore + kWaitStore, kNoFence},
      {"store_fence_before_write",
       kFence + kWrite + kMeet + kStore + kCommitStore + kWaitStore, kNoFence},
      {"store_fence_behind_barrier",
       kWrite + kMeet + kFence + kStore + kCommitStore + kWaitStore, ""},
      {"store_without_barrier",
       kWrite + kFence + kStore + kCommitStore + kWaitStore, ""},
      {"store_of_lane_copies",
       kLaneCopy + kCommit + kWait + kFence + kMeet + kStore + kCommitStore +
           kWaitStore,
       ""},
      {"store_of_lane_copies_without_fence",
       kLaneCopy + kCommit + kWait + kMeet + kStore + kCommitStore + kWaitStore,
       kNoFence},
      {"store_of_bulk_copies",
       kReady + copy(0, 0, 256) + wait(0) + kStore + kCommitStore + kWaitStore,
       ""},
      {"store_overwritten",
       kWrite + kFence + kMeet + kStore + kCommitStore + kMeet + kWrite +
           kWaitStore,
       kNoStoreWait},
      // Products of warpgroups.
      {"product",
       kWriteTile + kFence + kMeet + kMultiply + kCommitProduct + kWaitProduct +
           kOverwrite,
       "", 128},
      {"product_without_fence",
       kWriteTile + kMeet + kMultiply + kCommitProduct + kWaitProduct, kNoFence,
       128},
      {"product_fence_before_write",
       kFence + kWriteTile + kMeet + kMultiply + kCommitProduct + kWaitProduct,
       kNoFence, 128},
      {"product_without_barrier",
       kWriteTile + kFence + kMultiply + kCommitProduct + kWaitProduct,
       kNoBarrier, 128},
      {"product_without_wait",
       kWriteTile + kFence + kMeet + kMultiply + kCommitProduct + kOverwrite +
           kWaitProduct,
       kNoProductWait, 128},
      {"product_without_commit",
       kWriteTile + kFence + kMeet + kMultiply + kWaitProduct + kOverwrite,
       kNoProductWait, 128},
      {"product_overwritten_without_barrier",
       kWriteTile + kFence + kMeet + kMultiply + kCommitProduct + kWaitProduct +
           kWriteTile,
       kNoProductWait, 128},
      {"product_sums",
       kWriteTile + kFence + kMeet + kMultiply + kCommitProduct + kWaitProduct +
           "  mov.u32 %r24, %r20;\n",
       "", 128},
      {"product_sums_without_wait",
       kWriteTile + kFence + kMeet + kMultiply + kCommitProduct +
           "  mov.u32 %r24, %r20;\n" + kWaitProduct,
       "uses sums of a product", 128},
      {"product_sums_without_commit",
       kWriteTile + kFence + kMeet + kMultiply + kWaitProduct +
           "  mov.u32 %r24, %r20;\n",
       "uses sums of a product", 128},
      {"product_registers_without_fence",
       kWriteTile + kFence + kMeet + kMultiply + "  add.u32 %r20, %r0, 1;\n" +
           kMultiplyAgain + kCommitProduct + kWaitProduct,
       "no wgmma.fence between", 128},
      {"product_without_first_fence",
       kWriteTile + kFence + kMeet + kDescribe + kMultiplyAgain +
           kCommitProduct + kWaitProduct,
       "no wgmma.fence before it", 128},
      {"product_registers_moved_behind_fence",
       kWriteTile + kFence + kMeet + "  add.u32 %r24, %r0, 1;\n" + kDescribe +
           kRegisterFence + "  mov.u32 %r20, %r24;\n" + kMultiplyAgain +
           kCommitProduct + kWaitProduct,
       "", 128},
      {"product_registers",
       kWriteTile + kFence + kMeet + kMultiply + kMultiplyAgain +
           kCommitProduct + kWaitProduct + "  add.u32 %r20, %r0, 1;\n" +
           kMultiply + kCommitProduct + kWaitProduct,
       "", 128},
      // Clusters.
      {"cluster", kClusterWrite + kClusterMeet + kClusterRead + kClusterMeet,
       "", 32, 2},
      {"cluster_missing", kClusterWrite + kClusterRead + kClusterMeet,
       "of the cluster's block", 32, 2},
      {"cluster_relaxed",
       kClusterWrite +
           "  barrier.cluster.arrive.relaxed;\n"
           "  barrier.cluster.wait.acquire;\n" +
           kClusterRead + kClusterMeet,
       kNoBarrier, 32, 2},
      {"cluster_ends_early", kClusterWrite + kClusterMeet + kClusterRead,
       "may have ended when its shared memory is used by warp 0", 32, 2},
      {"cluster_wait_without_arrival", "  barrier.cluster.wait.acquire;\n",
       "without having come", 32, 2},
      {"cluster_arrives_twice",
       "  barrier.cluster.arrive.release;\n"
       "  barrier.cluster.arrive.release;\n",
       "twice without a wait", 32, 2},
      // What was there before.
      {"unwritten", kReadOther, kUnwritten},
  };
}

std::string describe(const Litmus &litmus, uint64_t seed) {
  Memory memory;
  uint64_t out = memory.allocate(4096);
  try {
    auto program = readProgram(kPrologue + litmus.body + "  ret;\n}\n");
    Launch launch;
    launch.kernel = program->kernels[0].get();
    launch.grid = {litmus.cluster, 1, 1};
    launch.threads = {litmus.threads, 1, 1};
    launch.cluster = litmus.cluster;
    launch.seed = seed;
    launch.parameters.resize(8);
    std::memcpy(launch.parameters.data(), &out, 8);
    runKernel(launch, memory);
  } catch (const Fault &fault) {
    return fault.what();
  }
  return "";
}

class Litmuses : public ::testing::TestWithParam<Litmus> {};

} // namespace

TEST_P(Litmuses, AreTold) {
  const Litmus &litmus = GetParam();
  std::string text = describe(litmus, 0);
  if (!*litmus.told)
    EXPECT_EQ(text, "");
  else
    EXPECT_NE(text.find(litmus.told), std::string::npos)
        << "told: " << text << "expected: " << litmus.told << "\n"
        << litmus.body;
  // Other schedules may end in other faults, but are right or wrong as well.
  for (uint64_t seed = 1; seed < 5; ++seed) {
    text = describe(litmus, seed);
    EXPECT_EQ(text.empty(), !*litmus.told) << "seed " << seed << ": " << text;
  }
}

TEST(Findings, AsJson) {
  Findings found("", {{{12, 7, Conflict::readsWrite}, "what is said"}});
  Kernel kernel;
  kernel.name = "test";
  EXPECT_EQ(found.json(kernel),
            R"({"kernel": "test", "line": 12, "other": 7, )"
            R"("kind": "reads_write", "text": "what is said"})"
            "\n");
}

INSTANTIATE_TEST_SUITE_P(SharedMemory, Litmuses, ::testing::ValuesIn(litmus()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
