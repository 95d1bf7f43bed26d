// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The life of a slot and its memory, in every layout that a pool makes.

#include "pool_test.h"

#include "counting_allocator.h"

#include <cmath>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

struct Layout {
  const char *name;
  void (*apply)(StatePoolShape &);
};

/// For the names of cases, instead of addresses.
std::ostream &operator<<(std::ostream &os, const Layout &layout) {
  return os << layout.name;
}

class StatePoolTest : public ::testing::TestWithParam<Layout> {
protected:
  static StatePoolShape shape() {
    StatePoolShape shape = smallShape();
    GetParam().apply(shape);
    return shape;
  }
};

const Layout kLayouts[] = {
    {"dense", [](StatePoolShape &) {}},
    {"sd", [](StatePoolShape &s) { s.convLayout = ConvLayout::sd; }},
    {"history",
     [](StatePoolShape &s) {
       s.convExtra = 3;
       s.convDType = DType::f32;
     }},
    {"paddedSlots",
     [](StatePoolShape &s) {
       s.stateSlotStride = 32;
       s.convSlotStride = 49;
       s.stateDType = DType::f16;
     }},
    {"pending", [](StatePoolShape &s) { s.pendingTokens = 4; }},
    {"pendingPerChannel",
     [](StatePoolShape &s) {
       s.pendingTokens = s.convExtra = 2;
       s.decayPerChannel = true;
     }},
    {"planes", [](StatePoolShape &s) { s.statePlanes = 2; }},
    {"planesPaddedSlots",
     [](StatePoolShape &s) {
       s.statePlanes = 2;
       s.stateSlotStride = 32;
     }},
    {"planesSlotMajor",
     [](StatePoolShape &s) {
       s.statePlanes = 2;
       s.stateSlotStride = 90, s.stateLayerStride = 30;
     }},
    {"pendingNarrow",
     [](StatePoolShape &s) {
       s.pendingTokens = 4;
       s.deferredWrites = true;
       s.pendingDType = DType::f16;
     }},
    {"planesPending",
     [](StatePoolShape &s) {
       s.statePlanes = 2;
       s.pendingTokens = 4;
     }},
    {"slotMajor",
     [](StatePoolShape &s) {
       s.stateSlotStride = 90, s.stateLayerStride = 30;
       s.convSlotStride = 150, s.convLayerStride = 50;
     }},
};

} // namespace

INSTANTIATE_TEST_SUITE_P(Layouts, StatePoolTest, ::testing::ValuesIn(kLayouts),
                         [](const auto &info) { return info.param.name; });

TEST_P(StatePoolTest, BeginsWithZeros) {
  auto pool = makePool(shape());
  EXPECT_EQ(colours(*pool), std::vector<int>(7, 0));
}

TEST_P(StatePoolTest, ViewsAreWhatKernelsTake) {
  auto pool = makePool(shape());
  Argument state = *pool->view(PoolBuffer::state, 2);
  EXPECT_EQ(std::vector<int64_t>(state.sizes, state.sizes + state.rank),
            (std::vector<int64_t>{7, 2, 5, 3}));
  EXPECT_EQ(state.strides[3], 1);
  EXPECT_EQ(state.nullSlot, 0);
  Argument conv = *pool->view(PoolBuffer::conv, 0);
  Argument history = *pool->view(PoolBuffer::convHistory, 0);
  EXPECT_EQ(std::vector<int64_t>(conv.sizes, conv.sizes + conv.rank),
            (std::vector<int64_t>{7, 16, 3}));
  EXPECT_EQ(history.sizes[2], 3 + pool->shape().convExtra);
  EXPECT_EQ(conv.data, history.data);
  EXPECT_EQ(conv.strides[1] == 1, shape().convLayout == ConvLayout::sd);
  EXPECT_EQ(static_cast<DType>(conv.dtype), shape().convDType);
  // At the same place whenever it is asked for.
  EXPECT_EQ(pool->view(PoolBuffer::state, 2)->data, state.data);
  EXPECT_EQ(pool->view(PoolBuffer::state, 3).status().toString(),
            "INVALID_ARGUMENT: state_pool: layer: expected 0 to 2, got 3");
}

TEST(StatePool, ViewsOfPendingTokens) {
  StatePoolShape shape = smallShape();
  shape.pendingTokens = 4;
  auto sizesOf = [](const StatePool &pool, PoolBuffer buffer) {
    Argument view = *pool.view(buffer, 1);
    EXPECT_EQ(static_cast<DType>(view.dtype), DType::f32);
    return std::vector<int64_t>(view.sizes, view.sizes + view.rank);
  };
  using Sizes = std::vector<int64_t>;
  auto pool = makePool(shape);
  EXPECT_EQ(sizesOf(*pool, PoolBuffer::pendingKeys), (Sizes{7, 1, 4, 3}));
  EXPECT_EQ(sizesOf(*pool, PoolBuffer::pendingDeltas), (Sizes{7, 2, 4, 5}));
  EXPECT_EQ(sizesOf(*pool, PoolBuffer::pendingDecays), (Sizes{7, 2, 4}));
  EXPECT_EQ(pool->shape().convExtra, 4);
  EXPECT_EQ(pool->memoryBytes(), *statePoolBytes(shape));
  shape.decayPerChannel = true;
  pool = makePool(shape);
  EXPECT_EQ(sizesOf(*pool, PoolBuffer::pendingDecays), (Sizes{7, 2, 4, 3}));
  shape.convExtra = 3;
  EXPECT_EQ(statePoolBytes(shape).status().toString(),
            "INVALID_ARGUMENT: state_pool: conv_extra: expected 4, the pending "
            "tokens, or 0, got 3");
  EXPECT_EQ(makePool()->view(PoolBuffer::pendingKeys, 0).status().toString(),
            "INVALID_ARGUMENT: state_pool: the pool has no memory for pending "
            "tokens");
}

TEST(StatePool, PendingTokensInF16HaveScales) {
  StatePoolShape shape = smallShape();
  shape.pendingTokens = 4;
  shape.deferredWrites = true;
  const uint64_t wide = *statePoolBytes(shape);
  EXPECT_EQ(
      makePool(shape)->view(PoolBuffer::pendingScales, 0).status().message(),
      "state_pool: the pool has no memory for scales of pending tokens, whose "
      "deltas are not f16");
  shape.pendingDType = DType::f16;
  auto pool = makePool(shape);
  EXPECT_LT(*statePoolBytes(shape), wide);
  auto view = [&](PoolBuffer buffer) { return *pool->view(buffer, 1); };
  for (PoolBuffer buffer : {PoolBuffer::pendingKeys, PoolBuffer::pendingDeltas})
    EXPECT_EQ(static_cast<DType>(view(buffer).dtype), DType::f16);
  EXPECT_EQ(static_cast<DType>(view(PoolBuffer::pendingDecays).dtype),
            DType::f32);
  const Argument scales = view(PoolBuffer::pendingScales);
  EXPECT_EQ(static_cast<DType>(scales.dtype), DType::f32);
  EXPECT_EQ(std::vector<int64_t>(scales.sizes, scales.sizes + scales.rank),
            (std::vector<int64_t>{7, shape.valueHeads, 4}));
  // They go along with a fork.
  auto scale = [&](int32_t slot) -> float & {
    return static_cast<float *>(scales.data)[slot * scales.strides[0]];
  };
  EXPECT_EQ(take(*pool, 1), (Ids{1}));
  EXPECT_EQ(scale(1), 0);
  scale(1) = 0.25;
  int32_t forked = 0;
  EXPECT_TRUE(*pool->fork(1, &forked, nullptr));
  EXPECT_EQ(scale(forked), 0.25);
}

TEST(StatePool, CountsOfPendingTokens) {
  StatePoolShape shape = smallShape();
  shape.pendingTokens = 4;
  shape.deferredWrites = true;
  StatePoolOptions options;
  options.debugChecks = true;
  auto pool = makePool(shape, options);
  // The step's inputs are not kept: the window is as in place.
  EXPECT_EQ(pool->shape().convExtra, 0);
  EXPECT_EQ(pool->memoryBytes(), *statePoolBytes(shape));
  Argument view = *pool->view(PoolBuffer::pendingCounts, 1);
  EXPECT_EQ(static_cast<DType>(view.dtype), DType::i32);
  EXPECT_EQ(std::vector<int64_t>(view.sizes, view.sizes + view.rank),
            (std::vector<int64_t>{7, 1}));
  auto count = [&](int32_t slot) -> int32_t & {
    return static_cast<int32_t *>(view.data)[slot];
  };
  EXPECT_EQ(take(*pool, 2, /*zero=*/false), (Ids{1, 2}));
  count(1) = 3;
  count(2) = 4;
  int32_t forked = 0, two = 2;
  EXPECT_TRUE(*pool->fork(1, &forked, nullptr));
  EXPECT_EQ(count(forked), 3);
  EXPECT_TRUE(pool->reset(&forked, 1, nullptr).isOk());
  EXPECT_EQ(count(forked), 0);
  // A freed slot has NaN, which is no count; what comes after its owner begins
  // with nothing pending, with zeros or without.
  EXPECT_TRUE(pool->free(&two, 1, nullptr).isOk());
  EXPECT_EQ(count(2), 0);
  count(2) = 4;
  EXPECT_EQ(take(*pool, 2, /*zero=*/false), (Ids{4, 2}));
  EXPECT_EQ(count(2), 0);
  EXPECT_EQ(count(1), 3);
  shape.pendingTokens = 0;
  EXPECT_EQ(statePoolBytes(shape).status().toString(),
            "INVALID_ARGUMENT: state_pool: pending_tokens: expected 1 or more "
            "with deferred_writes, got 0");
  shape.pendingTokens = 4;
  shape.deferredWrites = false;
  EXPECT_EQ(
      makePool(shape)->view(PoolBuffer::pendingCounts, 0).status().toString(),
      "INVALID_ARGUMENT: state_pool: the pool has no memory for counts "
      "of pending tokens: expected deferred_writes");
}

TEST(StatePool, PlanesOfStates) {
  using Sizes = std::vector<int64_t>;
  auto sizesOf = [](const Argument &view, DType dtype) {
    EXPECT_EQ(static_cast<DType>(view.dtype), dtype);
    EXPECT_EQ(view.strides[view.rank - 1], 1);
    EXPECT_EQ(view.nullSlot, 0);
    return Sizes(view.sizes, view.sizes + view.rank);
  };
  StatePoolShape shape = smallShape();
  shape.statePlanes = 2;
  auto pool = makePool(shape);
  EXPECT_EQ(sizesOf(*pool->view(PoolBuffer::state, 1), DType::u8),
            (Sizes{7, 2, 5, 3}));
  EXPECT_EQ(sizesOf(*pool->view(PoolBuffer::stateScales, 1), DType::f32),
            (Sizes{7, 2, 5}));
  EXPECT_EQ(sizesOf(*pool->view(PoolBuffer::stateLow, 1), DType::u8),
            (Sizes{7, 2, 5, 3}));
  EXPECT_EQ(pool->memoryBytes(), *statePoolBytes(shape));
  EXPECT_EQ(pool->view(PoolBuffer::stateLow, 3).status().toString(),
            "INVALID_ARGUMENT: state_pool: layer: expected 0 to 2, got 3");

  shape.statePlanes = 1;
  shape.deferredWrites = true;
  shape.pendingTokens = 4;
  pool = makePool(shape);
  EXPECT_EQ(sizesOf(*pool->view(PoolBuffer::stateScales, 0), DType::f32),
            (Sizes{7, 2, 5}));
  EXPECT_EQ(sizesOf(*pool->view(PoolBuffer::pendingCounts, 0), DType::i32),
            (Sizes{7, 1}));
  EXPECT_EQ(pool->view(PoolBuffer::stateLow, 0).status().toString(),
            "INVALID_ARGUMENT: state_pool: the pool has no lower plane of "
            "states: expected state_planes 2, got 1");
  EXPECT_EQ(makePool()->view(PoolBuffer::stateScales, 0).status().toString(),
            "INVALID_ARGUMENT: state_pool: the pool has no scales of states: "
            "expected state_planes 1 or 2, got 0");

  // Half of a large state, and a scale for each of its rows.
  shape = smallShape();
  shape.numRequests = 1000;
  shape.keyDim = shape.valueDim = 128;
  const uint64_t numbers = *statePoolBytes(shape);
  const int64_t rows = shape.numLayers * shape.numSlots() * 2 * 128;
  shape.statePlanes = 2;
  EXPECT_NEAR(static_cast<double>(numbers - *statePoolBytes(shape)),
              static_cast<double>(rows * (2 * 128 - 4)), 1024);
  // As many as fit, and no more.
  EXPECT_EQ(*requestsThatFit(shape, *statePoolBytes(shape)), 1000);
  EXPECT_EQ(*requestsThatFit(shape, *statePoolBytes(shape) - 1), 999);
}

// A freed slot has scales of NaN, a zeroed one scales of 0: bytes do not
// matter.
TEST(StatePool, ScalesOfFreedAndZeroedSlots) {
  StatePoolShape shape = smallShape();
  shape.statePlanes = 2;
  auto pool = makePool(shape, {/*debugChecks=*/true});
  const auto *scales =
      static_cast<const float *>(pool->view(PoolBuffer::stateScales, 2)->data);
  EXPECT_EQ(take(*pool, 2, /*zero=*/true), (Ids{1, 2}));
  EXPECT_EQ(freeAll(*pool, {2}), "OK");
  EXPECT_EQ(scales[1 * 10], 0);
  EXPECT_TRUE(std::isnan(scales[2 * 10]));
}

TEST(StatePool, PlanesThatNobodyHas) {
  auto refused = [](auto change) {
    StatePoolShape shape = smallShape();
    change(shape);
    return statePoolBytes(shape).status().toString();
  };
  EXPECT_EQ(refused([](StatePoolShape &s) { s.statePlanes = 3; }),
            "INVALID_ARGUMENT: state_pool: state_planes: expected 0 to 2, got "
            "3");
  EXPECT_EQ(refused([](StatePoolShape &s) { s.statePlanes = 1; }),
            "INVALID_ARGUMENT: state_pool: state_planes: expected 2 without "
            "deferred_writes, for one plane is too coarse for states that are "
            "rounded at every token, got 1");
  EXPECT_EQ(refused([](StatePoolShape &s) {
              s.statePlanes = 2;
              s.stateDType = DType::bf16;
            }),
            "INVALID_ARGUMENT: state_pool: state_dtype: expected f32 with "
            "state_planes, got bf16");
}

TEST_P(StatePoolTest, SlotsShareNoByte) {
  auto pool = makePool(shape());
  paintAll(*pool);
  EXPECT_EQ(colours(*pool), (std::vector<int>{1, 2, 3, 4, 5, 6, 7}));
}

TEST_P(StatePoolTest, ZeroedWhenAsked) {
  auto pool = makePool(shape());
  paintAll(*pool);
  EXPECT_EQ(take(*pool, 2, /*zero=*/false), (Ids{1, 2}));
  EXPECT_EQ(take(*pool, 2, /*zero=*/true), (Ids{3, 4}));
  EXPECT_EQ(take(*pool, 1, /*zero=*/true, SlotKind::track), (Ids{5}));
  EXPECT_EQ(colours(*pool), (std::vector<int>{1, 2, 3, 0, 0, 0, 7}));
}

TEST_P(StatePoolTest, ResetsWhatIsNamed) {
  auto pool = makePool(shape());
  paintAll(*pool);
  const Ids slots = {4, -1, 2, 0, 2, 3};
  EXPECT_TRUE(pool->reset(slots.data(), slots.size(), nullptr).isOk());
  EXPECT_EQ(colours(*pool), (std::vector<int>{1, 2, 0, 0, 0, 6, 7}));
  EXPECT_TRUE(pool->reset(nullptr, 0, nullptr).isOk());
  const Ids past = {1, 7};
  EXPECT_EQ(pool->reset(past.data(), 2, nullptr).toString(),
            "INVALID_ARGUMENT: state_pool: slot 7 is past the pool's 7 slots");
  EXPECT_EQ(colours(*pool), (std::vector<int>{1, 2, 0, 0, 0, 6, 7}));
}

TEST_P(StatePoolTest, CopiesWhatIsNamed) {
  auto pool = makePool(shape());
  paintAll(*pool);
  const Ids from = {1, 1, 6, 0, 4, 3}, to = {2, 5, 3, 4, -1, 3};
  // Slot 3 twice is passed over, so that it may be a target.
  EXPECT_TRUE(pool->copy(from.data(), to.data(), from.size(), nullptr).isOk());
  EXPECT_EQ(colours(*pool), (std::vector<int>{1, 2, 2, 7, 5, 2, 7}));
}

TEST_P(StatePoolTest, ForksUntilFull) {
  auto pool = makePool(shape());
  paintAll(*pool);
  take(*pool, 2);
  int32_t slot = -7;
  EXPECT_TRUE(*pool->fork(2, &slot, nullptr));
  EXPECT_EQ(slot, 3);
  EXPECT_TRUE(*pool->fork(5, &slot, nullptr)); // from a track slot
  EXPECT_EQ(slot, 4);
  EXPECT_EQ(colours(*pool), (std::vector<int>{1, 2, 3, 3, 6, 6, 7}));
  slot = -7;
  EXPECT_FALSE(*pool->fork(1, &slot, nullptr));
  EXPECT_EQ(slot, -7);
  EXPECT_EQ(pool->fork(0, &slot, nullptr).status().toString(),
            "INVALID_ARGUMENT: state_pool: slot 0 is padding and has nothing "
            "to copy");
}

TEST_P(StatePoolTest, DebugFillsFreedSlotsWithNan) {
  auto pool = makePool(shape(), {/*debugChecks=*/true});
  take(*pool, 3, /*zero=*/true);
  EXPECT_EQ(freeAll(*pool, {3, 1}), "OK");
  EXPECT_EQ(colours(*pool), (std::vector<int>{0, 255, 0, 255, 0, 0, 0}));
}

TEST(StatePool, DebugFindsUseAfterFree) {
  auto pool = makePool(smallShape(), {/*debugChecks=*/true});
  EXPECT_EQ(take(*pool, 2), (Ids{1, 2}));
  EXPECT_EQ(freeAll(*pool, {2}), "OK");
  const std::string isFree = "INVALID_ARGUMENT: state_pool: slot 2 is free";
  const Ids slots = {1, 2};
  EXPECT_EQ(pool->checkBatch(slots.data(), 2).toString(), isFree);
  EXPECT_EQ(pool->reset(slots.data(), 2, nullptr).toString(), isFree);
  EXPECT_EQ(pool->copy(&slots[1], &slots[0], 1, nullptr).toString(), isFree);
  EXPECT_EQ(pool->copy(&slots[0], &slots[1], 1, nullptr).toString(), isFree);
  int32_t slot;
  EXPECT_EQ(pool->fork(2, &slot, nullptr).status().toString(), isFree);
  EXPECT_EQ(freeAll(*pool, {1, 2}), isFree);
  // What failed did nothing.
  EXPECT_EQ(colours(*pool), (std::vector<int>{0, 0, 255, 0, 0, 0, 0}));
  EXPECT_EQ(pool->numInUse(SlotKind::request), 1);
}

TEST(StatePool, DebugFindsDuplicates) {
  auto pool = makePool();
  take(*pool, 2);
  const Ids good = {2, 0, 1, 0, -1}, bad = {2, 0, 2};
  EXPECT_EQ(pool->checkBatch(good.data(), good.size()).toString(), "OK");
  EXPECT_EQ(pool->checkBatch(bad.data(), bad.size()).toString(),
            "INVALID_ARGUMENT: state_pool: slot 2 occurs twice");
}

TEST(StatePool, DoubleFreeIsAnErrorAlways) {
  for (bool debug : {false, true}) {
    auto pool = makePool(smallShape(), {debug});
    take(*pool, 2);
    EXPECT_EQ(freeAll(*pool, {1}), "OK");
    EXPECT_EQ(freeAll(*pool, {2, 1}),
              "INVALID_ARGUMENT: state_pool: slot 1 is free");
    EXPECT_TRUE(pool->isInUse(2));
    EXPECT_EQ(pool->numFree(SlotKind::request), 3);
  }
}

TEST(StatePool, ForeignSlotsAreNotOurs) {
  StatePoolOptions options;
  options.debugChecks = options.foreignRequests = true;
  auto pool = makePool(smallShape(), options);
  int32_t slot = 0;
  EXPECT_EQ(pool->allocate(SlotKind::request, 1, &slot, false, nullptr)
                .status()
                .toString(),
            "INVALID_ARGUMENT: state_pool: the slots for requests are given "
            "out by somebody else");
  EXPECT_FALSE(pool->fork(1, &slot, nullptr).isOk());
  EXPECT_EQ(freeAll(*pool, {4}),
            "INVALID_ARGUMENT: state_pool: slot 4 is given out by somebody "
            "else");
  // All of them may be used, and track slots have owners as ever.
  paintAll(*pool);
  const Ids all = {1, 2, 3, 4};
  EXPECT_TRUE(pool->reset(all.data(), 4, nullptr).isOk());
  EXPECT_EQ(take(*pool, 1, false, SlotKind::track), (Ids{5}));
  EXPECT_EQ(freeAll(*pool, {5}), "OK");
  EXPECT_EQ(pool->numFree(SlotKind::track), 2);
}

TEST(StatePool, SaysWhereTokensArePending) {
  StatePoolShape shape = smallShape();
  shape.keyHeads = 2;
  shape.pendingTokens = 3;
  shape.deferredWrites = true;
  auto pool = makePool(shape);
  const Ids slots = take(*pool, 4);
  auto counts = [&](int64_t layer, int32_t slot) {
    const Argument view = *pool->view(PoolBuffer::pendingCounts, layer);
    return static_cast<int32_t *>(view.data) + slot * view.strides[0];
  };
  // Any head of any layer.
  counts(0, slots[0])[0] = 3;
  counts(2, slots[2])[1] = 1;
  counts(1, 0)[0] = 2;
  const Ids asked = {slots[3], slots[2], 0, -1, slots[1], slots[0]};
  std::vector<uint8_t> pending(6, 9);
  ASSERT_TRUE(
      pool->hasPending(asked.data(), 6, nullptr, pending.data()).isOk());
  EXPECT_EQ(pending, (std::vector<uint8_t>{0, 1, 0, 0, 0, 1}));
  EXPECT_TRUE(pool->reset(&slots[0], 1, nullptr).isOk());
  EXPECT_TRUE(pool->hasPending(&slots[0], 1, nullptr, pending.data()).isOk());
  EXPECT_EQ(pending[0], 0);
  const int32_t past = 99;
  EXPECT_EQ(pool->hasPending(&past, 1, nullptr, pending.data()).message(),
            "state_pool: slot 99 is past the pool's 7 slots");
  EXPECT_EQ(makePool()->hasPending(&past, 1, nullptr, pending.data()).message(),
            "state_pool: the pool has no memory for counts of pending tokens: "
            "expected deferred_writes");
}

TEST(StatePool, NothingIsAllocatedAfterwards) {
  if (!countsAllocations())
    GTEST_SKIP() << "a sanitizer has its own operator new";
  for (bool debug : {false, true}) {
    auto pool = makePool(smallShape(), {debug});
    int32_t slots[3], track = 0, fork = 0;
    bool isOk = true;
    const uint64_t before = numAllocations();
    for (int i = 0; i < 100; ++i) {
      isOk &= *pool->allocate(SlotKind::request, 3, slots, true, nullptr);
      isOk &= *pool->allocate(SlotKind::track, 1, &track, false, nullptr);
      isOk &= pool->checkBatch(slots, 3).isOk();
      isOk &= pool->copy(&slots[0], &track, 1, nullptr).isOk();
      isOk &= *pool->fork(track, &fork, nullptr);
      isOk &= !*pool->fork(track, &fork, nullptr);
      isOk &= pool->reset(slots, 3, nullptr).isOk();
      isOk &= pool->free(&fork, 1, nullptr).isOk();
      isOk &= pool->free(slots, 3, nullptr).isOk();
      isOk &= pool->free(&track, 1, nullptr).isOk();
      isOk &= pool->view(PoolBuffer::state, i % 3).isOk();
    }
    EXPECT_EQ(numAllocations(), before);
    EXPECT_TRUE(isOk);
    EXPECT_EQ(pool->numFree(SlotKind::request), 4);
  }
}
