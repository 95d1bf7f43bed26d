// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots far from the start of a pool, past what 32 bits hold: on a GPU behind
// 4,096 slots of 64 value heads, 2^32 elements of heads of 128; on a CPU, where
// the host makes up the numbers, behind as many of fewer heads. Memory in
// between is never touched, so that a CPU need not have it.

#include "suite.h"

using namespace gdnrt::cts;

using FarSlotCases = EntryTest;
INSTANTIATE_TEST_SUITE_P(
    Cts, FarSlotCases,
    ::testing::Combine(::testing::Values(EntryKind::decode, EntryKind::prefill,
                                         EntryKind::copy, EntryKind::zero),
                       ::testing::Values(1)),
    nameOf);

TEST_P(FarSlotCases, GiveTheSameBits) {
  Rows rows = {{2, 1, 3}, {4, 1, 9}};
  if (Problem(kernel.entry(), rows).outputs().empty())
    rows.writeSlots = {5, 2, 7};
  rows.valueHeads = suiteOptions.device == "cpu" ? 2 : 64;
  const int64_t first = 4096 * 64 / rows.valueHeads;
  Problem near(kernel.entry(), rows);
  Problem far = near;
  kernel.run(near);
  if (std::string why = kernel.runBehind(far, first); !why.empty())
    GTEST_SKIP() << "no memory for a pool of " << first << " slots: " << why;
  expectSameOutputs(near, far);
  expectSamePools(near, far);
}
