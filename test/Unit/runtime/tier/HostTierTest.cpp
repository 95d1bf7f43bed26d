// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host slots and copies on a CPU: all buffers of all kinds of pools come back
// bit for bit, owners are checked, and swapping does all or nothing.

#include "counting_allocator.h"
#include "tier_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// Pools of each kind that there is.
std::vector<StatePoolShape> allShapes() {
  std::vector<StatePoolShape> shapes;
  auto add = [&](auto &&change) {
    StatePoolShape shape = smallShape();
    change(shape);
    shapes.push_back(shape);
  };
  add([](StatePoolShape &) {});
  add([](StatePoolShape &s) { s.stateDType = DType::bf16; });
  add([](StatePoolShape &s) { s.convLayout = ConvLayout::sd; });
  add([](StatePoolShape &s) { s.pendingTokens = 3; });
  add([](StatePoolShape &s) {
    s.pendingTokens = 4;
    s.deferredWrites = true;
    s.pendingDType = DType::f16;
    s.statePlanes = 1;
    s.convExtra = 2;
  });
  add([](StatePoolShape &s) {
    s.pendingTokens = 2;
    s.decayPerChannel = true;
    s.statePlanes = 2;
  });
  // Slot after slot, all layers together.
  add([](StatePoolShape &s) {
    s.stateLayerStride = 30;
    s.stateSlotStride = 30 * s.numLayers;
    s.convLayerStride = s.channels() * 3;
    s.convSlotStride = s.convLayerStride * s.numLayers;
  });
  return shapes;
}

} // namespace

TEST(HostTier, AllOfASlotComesBack) {
  for (const StatePoolShape &shape : allShapes()) {
    auto pool = sharedPool(shape);
    auto tier = makeTier(pool);
    const Ids slots = take(*pool, 3);
    const Ids hosts = takeHost(*tier, 2);
    fillSlot(*pool, slots[0], 1);
    fillSlot(*pool, slots[1], 2);
    const auto first = bytesOf(*pool, slots[0]),
               second = bytesOf(*pool, slots[1]);
    EXPECT_EQ(tier->slotBytes(), first.size());
    ASSERT_TRUE(tier->store(slots.data(), hosts.data(), 2, nullptr).isOk());
    fillSlot(*pool, slots[0], 3);
    fillSlot(*pool, slots[2], 4);
    // One state to two slots.
    const Ids sources = {hosts[1], hosts[1], hosts[0]};
    ASSERT_TRUE(tier->load(sources.data(), slots.data(), 3, nullptr).isOk());
    EXPECT_EQ(bytesOf(*pool, slots[0]), second);
    EXPECT_EQ(bytesOf(*pool, slots[1]), second);
    EXPECT_EQ(bytesOf(*pool, slots[2]), first);
    uint8_t over[2] = {};
    ASSERT_TRUE(tier->isOver(hosts.data(), 2, over).isOk());
    EXPECT_EQ(over[0] + over[1], 2);
  }
}

TEST(HostTier, NeighboursKeepTheirBits) {
  auto pool = sharedPool(smallShape());
  auto tier = makeTier(pool);
  const Ids slots = take(*pool, 4);
  const Ids hosts = takeHost(*tier, 1);
  paintAll(*pool);
  ASSERT_TRUE(tier->store(&slots[2], hosts.data(), 1, nullptr).isOk());
  ASSERT_TRUE(tier->load(hosts.data(), &slots[0], 1, nullptr).isOk());
  EXPECT_EQ(colours(*pool), (std::vector<int>{1, 4, 3, 4, 5, 6, 7}));
}

TEST(HostTier, MemoryOfTheCaller) {
  // States [dk, dv] in memory, with gaps between slots.
  const StatePoolShape shape = smallShape();
  const int64_t slots = shape.numSlots();
  std::vector<float> states(3 * slots * 40), convs(3 * slots * 64);
  const int64_t stateSizes[] = {slots, 2, 5, 3}, convSizes[] = {slots, 16, 3};
  const int64_t stateStrides[] = {40, 15, 1, 5}, convStrides[] = {64, 3, 1};
  std::vector<Argument> stateArgs(3), convArgs(3);
  for (int64_t layer = 0; layer < 3; ++layer) {
    stateArgs[layer].data = states.data() + layer * slots * 40;
    stateArgs[layer].rank = 4;
    stateArgs[layer].sizes = stateSizes;
    stateArgs[layer].strides = stateStrides;
    convArgs[layer].data = convs.data() + layer * slots * 64;
    convArgs[layer].rank = 3;
    convArgs[layer].sizes = convSizes;
    convArgs[layer].strides = convStrides;
    stateArgs[layer].dtype = convArgs[layer].dtype =
        static_cast<int32_t>(DType::f32);
  }
  auto wrapped =
      StatePool::wrap(cpu(), shape, stateArgs.data(), convArgs.data(), {});
  ASSERT_TRUE(wrapped.isOk()) << wrapped.status().toString();
  std::shared_ptr<StatePool> pool = std::move(*wrapped);
  auto tier = makeTier(pool);
  const Ids taken = take(*pool, 2);
  const Ids hosts = takeHost(*tier, 2);
  fillSlot(*pool, taken[0], 9);
  const auto bytes = bytesOf(*pool, taken[0]);
  ASSERT_TRUE(tier->store(taken.data(), hosts.data(), 1, nullptr).isOk());
  ASSERT_TRUE(tier->load(hosts.data(), &taken[1], 1, nullptr).isOk());
  EXPECT_EQ(bytesOf(*pool, taken[1]), bytes);
  // A file does not know the order of memory.
  const auto file = save(*tier, hosts[0]);
  auto plain = sharedPool([&] {
    StatePoolShape other = shape;
    other.convDType = DType::f32;
    return other;
  }());
  auto other = makeTier(plain);
  const Ids host = takeHost(*other, 1), slot = take(*plain, 1);
  ASSERT_EQ(restore(*other, host[0], {file}).toString(), "OK");
  ASSERT_TRUE(other->load(host.data(), slot.data(), 1, nullptr).isOk());
  EXPECT_EQ(bytesOf(*plain, slot[0]), bytes);
  ASSERT_EQ(restore(*tier, hosts[1], {file}).toString(), "OK");
  paint(*pool, taken[0], 0);
  ASSERT_TRUE(tier->load(&hosts[1], taken.data(), 1, nullptr).isOk());
  EXPECT_EQ(bytesOf(*pool, taken[0]), bytes);
  HostTierOptions planes;
  planes.numSlots = 1;
  planes.format = StateFormat::i8x2;
  EXPECT_EQ(HostTier::make(pool, planes).status().toString(),
            "INVALID_ARGUMENT: host_tier: format: expected states [Hv, dv, dk] "
            "in that order in memory for planes, got another order");
}

TEST(HostTier, Owners) {
  auto pool = sharedPool(smallShape());
  auto tier = makeTier(pool, 2);
  const Ids slots = take(*pool, 2);
  Ids hosts = takeHost(*tier, 2), more(1);
  EXPECT_FALSE(*tier->allocate(1, more.data()));
  EXPECT_EQ(tier->numFree(), 0);
  auto message = [](const Status &status) { return status.toString(); };
  EXPECT_EQ(message(tier->load(hosts.data(), slots.data(), 1, nullptr)),
            "INVALID_ARGUMENT: host_tier: host slot 0 is empty: expected one "
            "that a state was stored to or read into");
  const Ids twice = {0, 0};
  EXPECT_EQ(message(tier->free(twice.data(), 2)),
            "INVALID_ARGUMENT: host_tier: host slot 0 occurs twice");
  EXPECT_EQ(message(tier->store(slots.data(), twice.data(), 2, nullptr)),
            "INVALID_ARGUMENT: host_tier: host slot 0 occurs twice");
  const Ids past = {2};
  EXPECT_EQ(message(tier->free(past.data(), 1)),
            "INVALID_ARGUMENT: host_tier: host slot: expected 0 to 1, got 2");
  const Ids null = {0}, unused = {3}, end = {7};
  EXPECT_EQ(message(tier->store(null.data(), hosts.data(), 1, nullptr)),
            "INVALID_ARGUMENT: state_pool: slot 0 is padding and has no state "
            "to move");
  EXPECT_EQ(message(tier->store(unused.data(), hosts.data(), 1, nullptr)),
            "INVALID_ARGUMENT: state_pool: slot 3 is free");
  EXPECT_EQ(message(tier->store(end.data(), hosts.data(), 1, nullptr)),
            "INVALID_ARGUMENT: state_pool: slot 7 is past the pool's 7 slots");
  ASSERT_TRUE(tier->store(slots.data(), hosts.data(), 2, nullptr).isOk());
  const Ids same = {slots[0], slots[0]};
  EXPECT_EQ(message(tier->load(hosts.data(), same.data(), 2, nullptr)),
            "INVALID_ARGUMENT: state_pool: slot 1 occurs twice");
  ASSERT_TRUE(tier->free(hosts.data(), 1).isOk());
  EXPECT_EQ(message(tier->free(hosts.data(), 1)),
            "INVALID_ARGUMENT: host_tier: host slot 0 is free");
  // What it held before is not the next owner's.
  hosts = takeHost(*tier, 1);
  EXPECT_EQ(hosts[0], 0);
  EXPECT_EQ(tier->load(hosts.data(), slots.data(), 1, nullptr).code(),
            StatusCode::invalidArgument);
  int stream = 0;
  EXPECT_EQ(message(tier->store(slots.data(), hosts.data(), 1, &stream)),
            "INVALID_ARGUMENT: stream: expected null, as a CPU has one queue");
}

TEST(HostTier, SwapsAllOrNothing) {
  auto pool = sharedPool(smallShape());
  auto tier = makeTier(pool, 2);
  const Ids slots = take(*pool, 3);
  for (int32_t slot : slots)
    fillSlot(*pool, slot, static_cast<uint32_t>(slot));
  const auto first = bytesOf(*pool, slots[0]),
             second = bytesOf(*pool, slots[1]);
  Ids hosts(3, -7);
  EXPECT_FALSE(*tier->swapOut(slots.data(), 3, nullptr, hosts.data()));
  EXPECT_EQ(pool->numFree(SlotKind::request), 1);
  EXPECT_EQ(tier->numFree(), 2);
  const Ids twice = {slots[0], slots[0]};
  EXPECT_EQ(
      tier->swapOut(twice.data(), 2, nullptr, hosts.data()).status().toString(),
      "INVALID_ARGUMENT: state_pool: slot 1 occurs twice");
  EXPECT_EQ(tier->numFree(), 2);
  ASSERT_TRUE(*tier->swapOut(slots.data(), 2, nullptr, hosts.data()));
  EXPECT_EQ(pool->numFree(SlotKind::request), 3);
  EXPECT_EQ(tier->numFree(), 0);
  // Others take what there is.
  const Ids others = take(*pool, 2, /*zero=*/true);
  Ids back(2, -7);
  EXPECT_FALSE(*tier->swapIn(hosts.data(), 2, nullptr, back.data()));
  EXPECT_EQ(tier->numFree(), 0);
  EXPECT_EQ(freeAll(*pool, others), "OK");
  ASSERT_TRUE(*tier->swapIn(hosts.data(), 2, nullptr, back.data()));
  EXPECT_EQ(bytesOf(*pool, back[0]), first);
  EXPECT_EQ(bytesOf(*pool, back[1]), second);
  EXPECT_EQ(tier->numFree(), 2);
  EXPECT_EQ(pool->numFree(SlotKind::request), 1);
  // An empty one gives everything back.
  Ids empty = takeHost(*tier, 1);
  EXPECT_EQ(tier->swapIn(empty.data(), 1, nullptr, back.data()).status().code(),
            StatusCode::invalidArgument);
  EXPECT_EQ(pool->numFree(SlotKind::request), 1);
}

TEST(HostTier, SlotsThatSomebodyElseGivesOut) {
  StatePoolOptions foreign;
  foreign.foreignRequests = true;
  auto pool = sharedPool(smallShape(), foreign);
  auto tier = makeTier(pool, 2);
  int32_t slot = 3, host = -1;
  fillSlot(*pool, slot, 4);
  const auto bytes = bytesOf(*pool, slot);
  EXPECT_EQ(tier->swapOut(&slot, 1, nullptr, &host).status().toString(),
            "INVALID_ARGUMENT: state_pool: slot 3 is given out by somebody "
            "else");
  EXPECT_EQ(tier->numFree(), 2);
  host = takeHost(*tier, 1)[0];
  ASSERT_TRUE(tier->store(&slot, &host, 1, nullptr).isOk());
  EXPECT_EQ(tier->swapIn(&host, 1, nullptr, &slot).status().code(),
            StatusCode::invalidArgument);
  slot = 1;
  ASSERT_TRUE(tier->load(&host, &slot, 1, nullptr).isOk());
  ASSERT_TRUE(tier->wait(&slot, 1, nullptr).isOk());
  EXPECT_EQ(bytesOf(*pool, slot), bytes);
}

TEST(HostTier, NothingIsAllocatedAfterwards) {
  if (!countsAllocations())
    GTEST_SKIP() << "a sanitizer has its own operator new";
  for (auto format : {StateFormat::f32, StateFormat::i8x2}) {
    auto pool = sharedPool(smallShape());
    HostTierOptions options;
    options.numSlots = 3;
    options.format = format;
    auto tier = makeTier(pool, options);
    int32_t slots[3], hosts[3];
    uint8_t over[3];
    bool isOk = true;
    const uint64_t before = numAllocations();
    for (int i = 0; i < 100; ++i) {
      isOk &= *pool->allocate(SlotKind::request, 3, slots, true, nullptr);
      isOk &= *tier->swapOut(slots, 3, nullptr, hosts);
      isOk &= !*tier->allocate(1, hosts);
      isOk &= *tier->swapIn(hosts, 3, nullptr, slots);
      isOk &= *tier->allocate(3, hosts);
      isOk &= tier->store(slots, hosts, 3, nullptr).isOk();
      isOk &= tier->load(hosts, slots, 3, nullptr).isOk();
      isOk &= tier->wait(slots, 3, nullptr).isOk();
      isOk &= tier->isOver(hosts, 3, over).isOk();
      isOk &= tier->free(hosts, 3).isOk();
      isOk &= pool->free(slots, 3, nullptr).isOk();
    }
    EXPECT_EQ(numAllocations(), before);
    EXPECT_TRUE(isOk);
  }
}

TEST(HostTier, Options) {
  auto pool = sharedPool(smallShape());
  auto message = [&](auto &&change) {
    HostTierOptions options;
    options.numSlots = 2;
    change(options);
    return HostTier::make(pool, options).status().toString();
  };
  EXPECT_EQ(message([](HostTierOptions &) {}), "OK");
  EXPECT_EQ(message([](HostTierOptions &o) { o.numSlots = 0; }),
            "INVALID_ARGUMENT: host_tier: num_slots: expected 1 to 1073741824, "
            "got 0");
  EXPECT_EQ(message([](HostTierOptions &o) { o.share.tpSize = 0; }),
            "INVALID_ARGUMENT: host_tier: tp_size: expected 1 to 1048576, got "
            "0");
  for (int64_t ranks : {int64_t{-1}, int64_t{1} << 62})
    EXPECT_EQ(message([&](HostTierOptions &o) { o.share.tpSize = ranks; }),
              "INVALID_ARGUMENT: host_tier: tp_size: expected 1 to 1048576, "
              "got " +
                  std::to_string(ranks));
  EXPECT_EQ(message([](HostTierOptions &o) { o.share.tpRank = 1; }),
            "INVALID_ARGUMENT: host_tier: tp_rank: expected 0 to 0, got 1");
  EXPECT_EQ(message([](HostTierOptions &o) { o.share = {2, 0, 3, 6}; }),
            "INVALID_ARGUMENT: host_tier: total_key_heads: expected a multiple "
            "or a divisor of 2, the ranks, got 3");
  EXPECT_EQ(message([](HostTierOptions &o) { o.share = {2, 0, 2, 8}; }),
            "INVALID_ARGUMENT: host_tier: total_value_heads: expected 4 heads "
            "of a rank in the pool, got 2");
  StatePoolShape narrow = smallShape();
  narrow.stateDType = DType::bf16;
  HostTierOptions options;
  options.numSlots = 1;
  options.format = StateFormat::i8x2;
  EXPECT_EQ(HostTier::make(sharedPool(narrow), options).status().toString(),
            "INVALID_ARGUMENT: host_tier: format: expected bf16, that of the "
            "pool, as only states of f32 are rounded, got i8x2");
  options.format = StateFormat::bf16;
  EXPECT_TRUE(HostTier::make(sharedPool(narrow), options).isOk());
  options.numSlots = int64_t{1} << 30;
  StatePoolShape large = smallShape();
  large.keyDim = large.valueDim = 512;
  options.format = std::nullopt;
  EXPECT_EQ(HostTier::make(sharedPool(large), options).status().code(),
            StatusCode::outOfMemory);
}
