// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What orders accesses to global memory in a block and between launches, and
// what does not: a message through each mechanism, right and with an edge left
// out.
#include "GlobalLitmus.h"

using namespace ptx::litmus;

namespace {

const std::string kReady = "  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\n"
                           "  fence.mbarrier_init.release.cluster;\n" +
                           kMeet,
                  kWaitPhase =
                      "{\nAGAIN:\n  mbarrier.try_wait.parity.shared::cta.b64 "
                      "%p8, [%r2], 0;\n  @!%p8 bra AGAIN;\n}\n";

std::string arrive(const std::string &order) {
  return "  @%p1 mbarrier.arrive" + order + ".shared::cta.b64 _, [%r2];\n";
}

const std::string kLaneCopy = "  shl.b32 %r8, %r0, 4;\n"
                              "  cvt.u64.u32 %rd6, %r8;\n"
                              "  add.s64 %rd6, %rd6, %rd0;\n"
                              "  add.s32 %r8, %r8, %r1;\n"
                              "  cp.async.cg.shared.global [%r8], [%rd6], 16;\n"
                              "  cp.async.commit_group;\n",
                  kWaitCopy = "  cp.async.wait_group 0;\n",
                  kOverwriteCopied = "  st.global.u32 [%rd6], %r0;\n";

/// The first lane copies what warp 0 has to or from shared memory.
const std::string kLoad =
                      "  @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, "
                      "[%r2], 128;\n"
                      "  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::"
                      "complete_tx::bytes [%r1], [%rd0], 128, [%r2];\n",
                  kStore = "  shl.b32 %r8, %r0, 2;\n"
                           "  add.s32 %r8, %r8, %r1;\n"
                           "  st.shared.u32 [%r8], %r0;\n"
                           "  fence.proxy.async.shared::cta;\n" +
                           kMeet +
                           "  @%p1 cp.async.bulk.global.shared::cta.bulk_group "
                           "[%rd0], [%r1], 128;\n"
                           "  @%p1 cp.async.bulk.commit_group;\n",
                  kWaitStore = "  @%p1 cp.async.bulk.wait_group 0;\n",
                  kWaitStoreRead = "  @%p1 cp.async.bulk.wait_group.read 0;\n";

/// Of one block.
std::vector<Litmus> inBlocks() {
  return {
      {"barrier", {kWrite + kMeet + kReadOther}, ""},
      {"barrier_missing", {kWrite + kReadOther}, kNoBarrier},
      {"barrier_before_write", {kMeet + kWrite + kReadOther}, kNoBarrier},
      {"barrier_for_overwriting",
       {kWrite + kMeet + kReadOther + kMeet + kWrite},
       ""},
      {"barrier_for_overwriting_missing",
       {kWrite + kMeet + kReadOther + kWrite},
       kNoBarrier},
      {"lanes", {kWrite + kMeetWarp + kReadNext}, ""},
      {"lanes_missing", {kWrite + kReadNext}, kNoMeeting},
      {"lanes_exchange_is_no_barrier",
       {kWrite + kShuffle + kReadNext},
       kNoMeeting},
      {"lanes_move_in_place", {kReadNext + kMeetWarp + kWrite}, ""},
      {"lanes_move_in_place_behind_exchange",
       {kReadNext + kShuffle + kWrite},
       ""},
      {"lanes_move_in_place_at_once", {kReadNext + kWrite}, kNoMeeting},
      {"lanes_write_halves_of_words",
       {"  mul.wide.u32 %rd6, %r0, 2;\n  add.s64 %rd6, %rd6, %rd0;\n"
        "  ld.global.b16 %h1, [%rd6];\n  st.global.b16 [%rd6], %h0;\n"
        "  ld.global.b16 %h1, [%rd6];\n"},
       ""},
      {"lanes_move_halves_of_words",
       {"  mul.wide.u32 %rd6, %r0, 2;\n  add.s64 %rd6, %rd6, %rd0;\n"
        "  ld.global.b16 %h1, [%rd6+2];\n  st.global.b16 [%rd6], %h1;\n"},
       kNoMeeting,
       1,
       32},
      {"mbarrier",
       {kReady +
        roles(kWrite + kMeetWarp + arrive(""), kWaitPhase + kReadOther)},
       ""},
      {"mbarrier_without_meeting",
       {kReady + roles(kWrite + arrive(""), kWaitPhase + kReadOther)},
       kNoBarrier},
      {"mbarrier_relaxed",
       {kReady + roles(kWrite + kMeetWarp + arrive(".relaxed.cta"),
                       kWaitPhase + kReadOther)},
       kNoBarrier},
      {"cluster_barrier",
       {kWrite +
        "  barrier.cluster.arrive.release;\n"
        "  barrier.cluster.wait.acquire;\n" +
        kReadBlock},
       "",
       2,
       64,
       2},
      {"cluster_barrier_relaxed",
       {kWrite +
        "  barrier.cluster.arrive.relaxed;\n"
        "  barrier.cluster.wait.acquire;\n" +
        kReadBlock},
       kNoBarrier,
       2,
       64,
       2},
      // Copies on the side.
      {"lane_copies_read", {kLaneCopy + kWaitCopy + kOverwriteCopied}, ""},
      {"lane_copies_read_without_wait",
       {kLaneCopy + kOverwriteCopied + kWaitCopy},
       "no cp.async.wait_group"},
      {"bulk_reads_what_was_written",
       {kReady + kWrite + "  fence.proxy.async;\n" + kMeet + kLoad +
        kWaitPhase},
       ""},
      {"bulk_reads_what_was_written_without_fence",
       {kReady + kWrite + kMeet + kLoad + kWaitPhase},
       kNoProxy},
      {"bulk_reads_what_was_written_with_fence_of_shared_memory",
       {kReady + kWrite + "  fence.proxy.async.shared::cta;\n" + kMeet + kLoad +
        kWaitPhase},
       kNoProxy},
      {"bulk_read_is_overwritten",
       {kReady + kLoad + kWaitPhase + kWrite},
       "",
       1,
       32},
      {"bulk_read_is_overwritten_without_wait",
       {kReady + kLoad + kWrite + kWaitPhase},
       "no wait for the end of a phase"},
      {"bulk_store", {kStore + kWaitStore + kMeet + kReadOwn}, ""},
      {"bulk_store_has_read_alone",
       {kStore + kWaitStoreRead + kMeet + kReadOwn},
       "no cp.async.bulk.wait_group, other than .read"},
      // Loads of what nobody writes.
      {"constant", {"  ld.global.nc.u32 %r6, [%rd1];\n"}, ""},
      {"constant_is_written",
       {kWrite + "  ld.global.nc.u32 %r6, [%rd1];\n"},
       kConstant},
      {"constant_is_overwritten",
       {"  ld.global.nc.u32 %r6, [%rd1];\n" + kWrite},
       kConstant},
  };
}

/// Launches of a stream.
std::vector<Litmus> betweenLaunches() {
  const std::string awaitAlone = "  @%p1 griddepcontrol.wait;\n", none;
  return {
      {"in_order", {kWrite, kReadOther}, ""},
      {"dependent", {kWrite, kAwait + kReadOther}, "", 1, 64, 1, true},
      {"dependent_without_wait",
       {kWrite, kReadOther},
       kNoAwait,
       1,
       64,
       1,
       true},
      {"dependent_waits_late",
       {kWrite, kReadOther + kAwait},
       kNoAwait,
       1,
       64,
       1,
       true},
      {"dependent_one_waits_for_all",
       {kWrite, awaitAlone + kMeet + kReadOther},
       "",
       1,
       64,
       1,
       true},
      {"dependent_one_waits_for_itself",
       {kWrite, awaitAlone + kReadOther},
       kNoAwait,
       1,
       64,
       1,
       true},
      {"dependent_behind_release",
       {kWrite + kRelease, kReadOther},
       kNoAwait,
       1,
       64,
       1,
       true},
      {"dependent_reads_as_well", {kReadOther, kReadOther}, "", 1, 64, 1, true},
      {"dependent_overwrites",
       {kReadOther, kWrite},
       "ld.global.u32 (an earlier launch)",
       1,
       64,
       1,
       true},
      {"dependent_constant_behind_wait",
       {kWrite, kAwait + "  ld.global.nc.u32 %r6, [%rd1];\n"},
       "",
       1,
       64,
       1,
       true},
      // The launch ahead has waited before it let this one begin, or has not.
      {"third_of_waiting",
       {kWrite, kAwait + kRelease, kReadOther},
       "",
       1,
       64,
       1,
       true},
      {"third_of_released",
       {kWrite, kRelease + kAwait, kReadOther},
       kNoAwait,
       1,
       64,
       1,
       true},
      {"third_waits",
       {kWrite, kRelease + kAwait, kAwait + kReadOther},
       "",
       1,
       64,
       1,
       true},
      {"third_waits_for_one_that_has_not",
       {kWrite, none, kAwait + kReadOther},
       "has not waited for that one",
       1,
       64,
       1,
       true},
      {"third_of_one_block_that_waits",
       {kWrite, "  @!%p3 bra END;\n" + kAwait + "END:\n", kAwait + kReadOther},
       "",
       2,
       64,
       1,
       true},
  };
}

class GlobalLitmuses : public ::testing::TestWithParam<Litmus> {};

} // namespace

TEST_P(GlobalLitmuses, AreTold) { check(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Blocks, GlobalLitmuses,
                         ::testing::ValuesIn(inBlocks()), nameOf);
INSTANTIATE_TEST_SUITE_P(Launches, GlobalLitmuses,
                         ::testing::ValuesIn(betweenLaunches()), nameOf);
