// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See DecodePolicy.h. What was measured, and how, is in
// docs/design/20261121-decode-schedule.md.
#include "DecodePolicy.h"

using namespace gdn;

DecodePolicy DecodePolicy::get(const TargetModel &target) {
  DecodePolicy policy;
  if (target.hasTma()) {
    auto &streamed = policy.streamed.emplace();
    streamed.minUnits = 288;
    streamed.minWideUnits = 192;
    streamed.maxUnits = 4096;
    streamed.maxWideUnits = 1024;
    // Two blocks per multiprocessor.
    streamed.sharedBytes =
        target.getSharedBytesPerSm() / 2 - target.getSharedBytesReserved();
    // Where blocks have 49 KB each, a ring of f32 states has two places, and
    // the scan spills.
    if (target.getSharedBytesPerBlock() < 128 * 1024)
      streamed.maxWideUnits = 0;
  }
  // Measured on an H200 alone, where 4,096 units in random order take 84.2 us
  // by "rows", 84.0 by "packed" and 86.7 by "streamed".
  if (target.hasWgmma()) {
    policy.streamed->maxUnits = 4095;
    policy.resident.packedUnits = 4097;
  }
  // With 256 threads ptxas keeps to 128 registers there and spills four words
  // of a commit with states of f32.
  if (target.hasPackedF32())
    policy.moves.threads = 512;
  return policy;
}
