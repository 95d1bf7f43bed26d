// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See DecodePolicy.h. What was measured, and how, is in
// docs/design/20261121-decode-schedule.md.
#include "DecodePolicy.h"

using namespace gdn;

DecodePolicy DecodePolicy::get(const TargetModel &target) {
  DecodePolicy policy;
  if (target.hasTma()) {
    auto &persistent = policy.persistent.emplace();
    persistent.minUnits = 288;
    persistent.minWideUnits = 192;
    persistent.maxUnits = 4096;
    persistent.maxWideUnits = 1024;
    // With pending tokens on an H100 "rows" is faster up to 1,024 units if the
    // launch is not dependent (36.0 and 38.8 us with states of f32, 26.4 and
    // 28.5 with bf16), and "persistent" at 2,048.
    persistent.replayUnits = 1280;
    // Two blocks per multiprocessor.
    persistent.sharedBytes =
        target.getSharedBytesPerSm() / 2 - target.getSharedBytesReserved();
    // Where blocks have 49 KB each, a ring of f32 states has two places, and
    // the scan spills.
    if (target.getSharedBytesPerBlock() < 128 * 1024)
      persistent.maxWideUnits = 0;
  }
  // Measured on an H200 alone, where 4,096 units in random order take 84.2 us
  // by "rows", 84.0 by "narrow" and 86.7 by "persistent".
  if (target.hasWgmma()) {
    policy.persistent->maxUnits = 4095;
    policy.resident.narrowUnits = 4097;
  }
  // 16/32 heads, dependent launches, us. Eight warps, on an H200, 1, 8 and 16
  // sequences: two planes, which stay in registers for a fold, with two blocks
  // 3.2, 6.3 and 12.2, without that with three 3.5, 7.4 and 12.8; the upper one
  // of two with three 3.2, 6.5 and 10.2, one plane with four 3.0, 6.0 and 8.9.
  // Where all blocks have room, with two on a multiprocessor, one plane stays
  // in registers, too ("sparse"): 3.0 and 5.8, and 2.9 and 5.4; beyond that
  // they come in turns. Two turns of them are better than the second of three
  // blocks with few heads in many rows: 2/8 heads, upper plane, 40, 48, 56 and
  // 64 sequences 8.7, 9.6, 10.2 and 10.8, and 8.3, 9.3, 10.8 and 12.0; but 8
  // sequences of 16/64 heads 10.0 and 9.6, 16 of 16/32 11.1 and 10.2.
  // Pending tokens of f16, on an H200, eight and four warps: 16 sequences 12.9
  // and 13.5 with two planes, 11.3 and 11.9 with the upper one, 32 sequences
  // 21.4 and 21.5, and 18.1 and 17.3; one plane 9.8 and 9.7, and 16.2 and 14.7.
  // Four warps, 64, 256 and 512 sequences: of states of one plane five blocks
  // 25, 79 and 149, six 26, 83 and 156; of the upper one of two 29, 91 and 170,
  // and 29, 86 and 159; with two planes four blocks 35, 105 and 199, and five
  // spill.
  policy.resident.onePlaneBlocks = 4;
  policy.resident.upperBlocks = 3;
  policy.resident.twoPlaneBlocks = 2;
  policy.resident.sparseUnits =
      policy.resident.twoPlaneBlocks * target.getMeasuredSms();
  policy.resident.sparseRows = 48;
  policy.resident.crowdedUnits = 1024;
  policy.resident.crowdedThreads = 128;
  policy.resident.crowdedOnePlaneBlocks = 5;
  policy.resident.crowdedUpperBlocks = 6;
  policy.resident.crowdedTwoPlaneBlocks = 4;
  // States of bf16 with pending tokens, W = 8, on an H200, "crowded" and what
  // was taken before: 32 sequences 20.1 and 21.0 ("rows"), 64 31.6 and 41.0
  // ("persistent"), 128 55 and 64, 512 189 and 214. With five blocks, of which
  // each thread spills ten words, 35 with 64 sequences and 199 with 512. Not
  // where four blocks of 34 KB have no room.
  if (target.getSharedBytesPerBlock() >= 128 * 1024) {
    policy.resident.crowdedNarrowUnits = 1024;
    policy.resident.crowdedNarrowBlocks = 4;
    if (policy.persistent)
      policy.persistent->maxNarrowReplayUnits = 0;
  }
  // With 256 threads ptxas keeps to 128 registers there and spills four words
  // of a commit with states of f32.
  if (target.hasPackedF32())
    policy.moves.threads = 512;
  // Measured on an H200 alone, 49 MiB in 24 layers, and eight times that: 29.1
  // and 203.3 us with pieces of 4 KiB and 128 threads, 29.4 and 208.5 with 256,
  // 29.9 and 206.7 with 16 KiB and 256; of one piece of memory 27.5 and 196.8.
  if (target.hasWgmma())
    policy.slotPiece = 4 * 1024;
  return policy;
}
