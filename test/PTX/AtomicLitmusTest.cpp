// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What orders accesses to global memory by blocks of a launch, and what does
// not: fences, release and acquire, scopes, and counters.
#include "GlobalLitmus.h"

using namespace ptx::litmus;

namespace {

/// Each block writes, and the last one to arrive reads what the other has
/// written. The first thread counts, with `before` and `behind` around it.
std::string lastArrival(const std::string &before, const std::string &order,
                        const std::string &behind,
                        const std::string &meets = kMeet,
                        const std::string &meetsAgain = kMeet) {
  return kWrite + meets + "  @!%p1 bra COUNTED;\n" + before + "  atom." +
         order + ".global.add.u32 %r8, [%rd5], 1;\n" + behind +
         "  st.shared.u32 [%r1], %r8;\nCOUNTED:\n" + meetsAgain +
         "  ld.shared.u32 %r9, [%r1];\n"
         "  setp.ne.u32 %p4, %r9, 1;\n  @%p4 bra FIRST;\n" +
         kReadBlock + "FIRST:\n";
}

/// Each warp reads a word that both blocks share and takes a ticket, whose
/// limit is `limit`; the last one overwrites the word.
std::string ticket(const std::string &limit, const std::string &between = "") {
  return "  shl.b32 %r4, %r0, 2;\n  cvt.u64.u32 %rd6, %r4;\n"
         "  add.s64 %rd6, %rd6, %rd0;\n"
         "  ld.global.u32 %r6, [%rd6];\n" +
         between +
         "  and.b32 %r10, %r6, 0;\n"
         "  setp.ne.u32 %p5, %r10, 0;\n"
         "  vote.sync.any.pred %p6, %p5, -1;\n"
         "  selp.b32 %r11, 1, 0, %p6;\n"
         "  or.b32 %r12, 1, %r11;\n  mov.u32 %r13, 1;\n"
         "  @%p1 atom.relaxed.gpu.global.inc.u32 %r8, [%rd5], " +
         limit +
         ";\n  shfl.sync.idx.b32 %r9, %r8, 0, 31, -1;\n"
         "  setp.ne.u32 %p4, %r9, 1;\n  @%p4 bra FIRST;\n"
         "  st.global.u32 [%rd6], %r0;\nFIRST:\n";
}

/// Blocks of one launch.
std::vector<Litmus> betweenBlocks() {
  const std::string membar = "  membar.gl;\n", none;
  const std::string begin = kWrite + kMeet + "  @!%p1 bra END;\n";
  auto pass = [&](const std::string &first, const std::string &second) {
    return std::vector<std::string>{blocks(begin + first, second + kReadBlock)};
  };
  auto chain = [&](const std::string &second) {
    return std::vector<std::string>{
        "  setp.eq.u32 %p4, %r3, 1;\n  @%p4 bra SECOND;\n"
        "  setp.eq.u32 %p4, %r3, 2;\n  @%p4 bra THIRD;\n" +
        begin + set("release.gpu") + "  bra END;\nSECOND:\n" +
        "  @!%p1 bra END;\n" + await("relaxed.gpu") + second +
        // An acquire that finds 1 would have all of the first block.
        "  bra END;\nTHIRD:\n" + await("relaxed.gpu", 2) +
        "  ld.acquire.gpu.global.u32 %r8, [%rd5];\n"
        "  ld.global.u32 %r6, [%rd0];\nEND:\n"};
  };
  const std::string fenced = kFence + count("relaxed.gpu"),
                    seen = await("relaxed.gpu") + kFence;
  return {
      {"fences", pass(fenced, seen), "", 2},
      {"fences_missing_before", pass(count("relaxed.gpu"), seen), kNoAtomic, 2},
      {"fences_missing_behind", pass(fenced, await("relaxed.gpu")), kNoAtomic,
       2},
      {"fence_before_the_write",
       {blocks("  @%p1 fence.acq_rel.gpu;\n" + begin + count("relaxed.gpu"),
               seen + kReadBlock)},
       kNoAtomic,
       2},
      {"nothing", {blocks(kWrite, kReadBlock)}, kGlobal, 2},
      {"release", pass(set("release.gpu"), await("acquire.gpu")), "", 2},
      {"release_by_count", pass(count("release.gpu"), await("acquire.gpu")), "",
       2},
      {"release_by_relaxed", pass(set("relaxed.gpu"), await("acquire.gpu")),
       kNoAtomic, 2},
      {"release_is_not_acquired",
       pass(set("release.gpu"), await("relaxed.gpu")), kNoAtomic, 2},
      {"release_of_what_others_wrote_without_barrier",
       {blocks(kWrite + "  @!%p1 bra END;\n" + set("release.gpu"),
               await("acquire.gpu") + kReadBlock)},
       kNoAtomic,
       2},
      {"release_of_the_block", pass(set("release.cta"), await("acquire.gpu")),
       kNoAtomic, 2},
      {"acquire_of_the_block", pass(set("release.gpu"), await("acquire.cta")),
       kNoAtomic, 2},
      {"fence_of_the_block",
       pass("  membar.cta;\n" + count("relaxed.gpu"), seen), kNoAtomic, 2},
      {"release_within_the_block",
       {roles(kWrite + kMeetWarp + "  @!%p1 bra END;\n" + set("release.cta"),
              await("acquire.cta") + kReadOther)},
       ""},
      {"release_within_the_cluster",
       pass(set("release.cluster"), await("acquire.cluster")), "", 2, 64, 2},
      {"release_of_the_cluster_outside",
       pass(set("release.cluster"), await("acquire.cluster")), kNoAtomic, 2},
      {"flag_is_no_atomic",
       pass("  st.global.u32 [%rd5], 1;\n", await("acquire.gpu")), kGlobal, 2},
      {"volatile_flag",
       pass(kFence + set("volatile"), await("volatile") + kFence), "", 2},
      {"atomics_continue_a_release",
       chain("  atom.relaxed.gpu.global.add.u32 %r9, [%rd5], 1;\n"), "", 3},
      {"stores_end_a_release", chain(set("relaxed.gpu", 2)), kNoAtomic, 3},
      // The last block to arrive.
      {"last_arrival", {lastArrival(none, "acq_rel.gpu", none)}, "", 2},
      {"last_arrival_by_fences",
       {lastArrival(membar, "relaxed.gpu", membar)},
       "",
       2},
      {"last_arrival_by_default", {lastArrival(membar, "gpu", membar)}, "", 2},
      {"last_arrival_without_fence_before",
       {lastArrival(none, "relaxed.gpu", membar)},
       kNoAtomic,
       2},
      {"last_arrival_without_fence_behind",
       {lastArrival(membar, "relaxed.gpu", none)},
       kNoAtomic,
       2},
      {"last_arrival_that_releases_alone",
       {lastArrival(none, "release.gpu", none)},
       kNoAtomic,
       2},
      {"last_arrival_without_barrier_before",
       {lastArrival(none, "acq_rel.gpu", none, none)},
       kNoAtomic,
       2},
      {"last_arrival_without_barrier_behind",
       {lastArrival(none, "acq_rel.gpu", none, kMeet, none)},
       "a race with",
       2},
      // The last one that has read overwrites.
      {"ticket", {ticket("%r12")}, "", 2, 32},
      {"ticket_through_shared_memory",
       {ticket("%r12", "  shl.b32 %r14, %r0, 2;\n"
                       "  add.s32 %r14, %r14, %r1;\n"
                       "  st.shared.u32 [%r14], %r6;\n"
                       "  ld.shared.u32 %r6, [%r14];\n")},
       "",
       2,
       32},
      {"ticket_that_depends_on_nothing",
       {ticket("%r13")},
       "nor an atomic that depends on what was read",
       2,
       32},
      {"ticket_behind_a_barrier", {ticket("%r13", kMeet)}, "", 2, 32},
      {"ticket_tells_nothing_written",
       {lastArrival(none, "relaxed.gpu", none)},
       kNoAtomic,
       2},
  };
}

class AtomicLitmuses : public ::testing::TestWithParam<Litmus> {};

} // namespace

TEST_P(AtomicLitmuses, AreTold) { check(GetParam()); }

INSTANTIATE_TEST_SUITE_P(BetweenBlocks, AtomicLitmuses,
                         ::testing::ValuesIn(betweenBlocks()), nameOf);
