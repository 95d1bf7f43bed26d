// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Strides change where elements are and nothing else: padded slots, padded
// rows, and both orders of the convolution's state.

#include "suite.h"

using namespace gdnrt::cts;

using LayoutCases = EntryTest;
GDNRT_CTS_ENTRIES(LayoutCases);

static const Rows kRows = {{3, 0, 5, 1}, {2, 9, 4, 0}};

/// The array's strides with `padding` more elements per index of dimension 0.
static Sizes padded(const HostArray &array, int64_t padding) {
  Sizes strides = array.strides();
  strides[0] += padding;
  return strides;
}

TEST_P(LayoutCases, PaddedSlots) {
  Problem dense(kernel.entry(), kRows), wide(kernel.entry(), kRows);
  for (const std::string &pool : wide.pools())
    wide[pool].relayout(padded(wide[pool], 48));
  kernel.run(dense);
  kernel.run(wide);
  expectSameOutputs(dense, wide);
  expectSamePools(dense, wide);
  expectPaddingIntact(wide);
}

/// Of a prompt that has whole chunks, which may come another way than its last
/// tokens.
static const Rows kLongRows = {{3, 0, 150, 1}, {2, 9, 4, 0}};

TEST_P(LayoutCases, PaddedRows) {
  const Rows &rows =
      std::get<0>(GetParam()) == EntryKind::prefill ? kLongRows : kRows;
  Problem dense(kernel.entry(), rows), wide(kernel.entry(), rows);
  for (const char *name :
       {"qkvz", "ba", "qkv", "q", "k", "v", "z", "b", "a", "core", "out"})
    if (wide.has(name))
      wide[name].relayout(padded(wide[name], 24));
  kernel.run(dense);
  kernel.run(wide);
  expectSameOutputs(dense, wide);
  expectSamePools(dense, wide);
  expectPaddingIntact(wide);
}

/// Queries and keys of one head behind those of another.
TEST_P(LayoutCases, HeadsApart) {
  if (std::get<0>(GetParam()) != EntryKind::prefill)
    GTEST_SKIP() << "rows of one token or a few";
  Problem dense(kernel.entry(), kLongRows), apart(kernel.entry(), kLongRows);
  if (!apart.has("q") || apart["q"].sizes().size() != 3)
    GTEST_SKIP() << "the entry makes queries and keys itself";
  for (const char *name : {"q", "k"}) {
    const Sizes &sizes = apart[name].sizes();
    apart[name].relayout({sizes[2], sizes[0] * sizes[2], 1});
  }
  kernel.run(dense);
  kernel.run(apart);
  expectSameOutputs(dense, apart);
  expectSamePools(dense, apart);
}

TEST_P(LayoutCases, ConvStateByPosition) {
  Problem byChannel(kernel.entry(), kRows), byPosition(kernel.entry(), kRows);
  if (!byPosition.has("conv_pool"))
    GTEST_SKIP() << "the entry has no convolution";
  HostArray &pool = byPosition["conv_pool"];
  const Sizes &sizes = pool.sizes();
  pool.relayout({sizes[1] * sizes[2], 1, sizes[1]});
  kernel.run(byChannel);
  kernel.run(byPosition);
  expectSameOutputs(byChannel, byPosition);
  expectSamePools(byChannel, byPosition);
}
