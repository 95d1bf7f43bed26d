// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variants of a code: which one a launch takes, stages one after another, and
// the workspace that they share.

#include "arrays.h"
#include "gdnrt/aligned_bytes.h"
#include "gdnrt/cpu_device.h"
#include "schemas.h"
#include "test_image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// Arguments of the entry "neighbours" at addresses that nothing reads.
std::vector<Argument> neighbours(int64_t rows) {
  static int64_t sizes[1];
  sizes[0] = rows;
  Argument x, out;
  x.dtype = out.dtype = static_cast<int32_t>(DType::i64);
  x.rank = out.rank = 1;
  x.sizes = out.sizes = sizes;
  x.data = address(0x100000);
  out.data = address(0x200000);
  return {x, out};
}

std::unique_ptr<Binding> bindNeighbours(int64_t rows, int workers) {
  auto entry = makeEntry(addNeighbours);
  std::vector<Argument> args = neighbours(rows);
  auto bound = Binding::make(entry, entry->codes[0], args.data(), 2, workers);
  EXPECT_TRUE(bound.isOk()) << bound.status().toString();
  return std::move(*bound);
}

/// The variants of an entry with the symbols N and M, for 2 workers.
LaunchPlan plan(const std::function<void(EntryBuilder &)> &describe, int64_t n,
                int64_t m) {
  auto entry = makeEntry([&](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::f32, {"N", "M"})
        .code("a", {"N"})
        .variant("b")
        .stage("b", {"N"});
    describe(builder);
    builder.firstVariant();
  });
  LaunchPlan plan(*entry, entry->codes[0]);
  EXPECT_TRUE(plan.update(*entry, entry->codes[0], {n, m}, 2).isOk());
  return plan;
}

bool holds(const std::vector<std::string> &left,
           const std::vector<std::string> &right, int64_t n, int64_t m) {
  return plan([&](EntryBuilder &b) { b.condition(left, right); }, n, m)
      .variants()[0]
      .applies;
}

/// Bytes of a workspace of one region; -1: none can be had.
int64_t bytesOf(const std::vector<std::string> &region, int64_t n, int64_t m) {
  LaunchPlan made = plan([&](EntryBuilder &b) { b.workspace(region); }, n, m);
  auto bytes = made.variants()[0].workspaceBytes;
  EXPECT_EQ(made.choose(UINT64_MAX, 0), bytes ? 0u : 1u);
  return bytes ? static_cast<int64_t>(*bytes) : -1;
}

constexpr int64_t kLarge = std::numeric_limits<int64_t>::max();

} // namespace

TEST(Variants, ConditionsAreProducts) {
  EXPECT_TRUE(holds({"2", "N"}, {"workers"}, 1, 1));
  EXPECT_FALSE(holds({"2", "N"}, {"workers"}, 2, 1));
  EXPECT_TRUE(holds({"N + 1", "M"}, {"3*workers", "2"}, 3, 3));
  EXPECT_FALSE(holds({"N + 1", "M"}, {"3*workers", "2"}, 3, 4));
  EXPECT_TRUE(holds({}, {}, 0, 0)); // 1 <= 1
  EXPECT_FALSE(holds({}, {"N"}, 0, 5));
}

TEST(Variants, WhatDoesNotFitDoesNotHold) {
  EXPECT_FALSE(holds({"1"}, {"N", "M"}, kLarge, 2));
  EXPECT_FALSE(holds({"N", "M"}, {"N", "M"}, kLarge, 2));
  EXPECT_FALSE(holds({"1"}, {"N + 1"}, kLarge, 2));
  // One factor of 0 settles it.
  EXPECT_TRUE(holds({"N", "N", "M"}, {"0"}, kLarge, 0));
}

// Few of N, or many of both; and M is odd in none of them.
TEST(Variants, OneAlternativeHoldsBesides) {
  auto applies = [](int64_t n, int64_t m) {
    return plan(
               [](EntryBuilder &b) {
                 b.condition({"M"}, {"9"})
                     .alternative({{{"N"}, {"2"}}})
                     .alternative({{{"5"}, {"N"}}, {{"workers", "4"}, {"M"}}});
               },
               n, m)
        .variants()[0]
        .applies;
  };
  EXPECT_TRUE(applies(2, 1));   // the first
  EXPECT_FALSE(applies(3, 8));  // neither
  EXPECT_FALSE(applies(5, 7));  // half of the second
  EXPECT_TRUE(applies(5, 8));   // the second
  EXPECT_FALSE(applies(2, 10)); // the first, and not what holds for both
}

TEST(Variants, AlternativesAsText) {
  auto entry = makeEntry([&](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::f32, {"N"})
        .code("a", {"N"})
        .variant("b")
        .stage("b", {"N"})
        .condition({"N"}, {"9"})
        .alternative({{{"N"}, {"2"}}})
        .alternative({{{"5"}, {"N"}}, {{"2", "N"}, {"workers"}}})
        .firstVariant();
  });
  EXPECT_EQ(entry->codes[0].variants[0].conditionText,
            "N <= 9, (N <= 2 or 5 <= N and 2 * N <= workers)");
}

TEST(Variants, RegionsLieOneAfterAnother) {
  LaunchPlan made = plan(
      [](EntryBuilder &b) {
        b.workspace({"N", "4*M"})
            .workspace({"0"})
            .workspace({})
            .workspace({"64"});
      },
      5, 4);
  const LaunchPlan::Variant &variant = made.variants()[0];
  EXPECT_EQ(variant.regionOffsets, (std::vector<uint64_t>{0, 128, 128, 192}));
  EXPECT_EQ(variant.workspaceBytes, 256u);
  EXPECT_EQ(made.choose(255, 0), 1u);
  EXPECT_EQ(made.choose(256, 0), 0u);
}

TEST(Variants, SizesOfAWorkspace) {
  EXPECT_EQ(bytesOf({"N", "M"}, 3, 7), 64);
  EXPECT_EQ(bytesOf({"N - 4"}, 3, 7), -1);
  EXPECT_EQ(bytesOf({"N", "M"}, kLarge, 2), -1);
  EXPECT_EQ(bytesOf({"N"}, kLarge, 2), -1);
  EXPECT_EQ(bytesOf({"N", "N", "M"}, kLarge, 0), 0);
}

TEST(Variants, TheFirstThatFits) {
  // staged: at least two workers, eight rows for each.
  EXPECT_EQ(bindNeighbours(100, 1)->variant(), 1u);
  auto binding = bindNeighbours(16, 2);
  EXPECT_EQ(binding->variant(), 1u); // no workspace yet
  EXPECT_EQ(*binding->workspaceBytes(), 64u + 128u);
  EXPECT_EQ(binding->units(), 16);
  ASSERT_TRUE(binding->setWorkspace(address(0x1000), 191).isOk());
  EXPECT_EQ(binding->variant(), 1u);
  ASSERT_TRUE(binding->setWorkspace(address(0x1000), 192).isOk());
  EXPECT_EQ(binding->variant(), 0u);
  EXPECT_EQ(binding->units(), 32);
  // The addresses of the regions stand behind the symbols.
  EXPECT_EQ(binding->words(),
            (std::vector<int64_t>{0x100000, 16, 1, 0x200000, 16, 1, 16, 0x1000,
                                  0x1040}));
  // Sizes that outgrow the workspace, and that fall below the condition.
  const size_t both[] = {0, 1};
  std::vector<Argument> args = neighbours(17);
  ASSERT_TRUE(binding->rebind(both, args.data(), 2).isOk());
  EXPECT_EQ(binding->variant(), 1u);
  EXPECT_EQ(binding->words()[7], 0);
  args = neighbours(15);
  ASSERT_TRUE(binding->rebind(both, args.data(), 2).isOk());
  EXPECT_EQ(binding->variant(), 1u);
  EXPECT_EQ(*binding->workspaceBytes(), 0u);
  args = neighbours(16);
  ASSERT_TRUE(binding->rebind(both, args.data(), 2).isOk());
  EXPECT_EQ(binding->variant(), 0u);
  ASSERT_TRUE(binding->setWorkspace(nullptr, 0).isOk());
  EXPECT_EQ(binding->variant(), 1u);
}

TEST(Variants, Forced) {
  auto binding = bindNeighbours(4, 1); // no condition holds
  ASSERT_TRUE(binding->forceVariant(0).isOk());
  EXPECT_EQ(binding->variant(), 0u);
  EXPECT_EQ(*binding->workspaceBytes(), 128u);
  EXPECT_EQ(binding->checkVariant().toString(),
            "INVALID_ARGUMENT: f: expected a workspace of at least 128 bytes "
            "for the variant staged, got 0");
  ASSERT_TRUE(binding->setWorkspace(address(0x1000), 128).isOk());
  EXPECT_TRUE(binding->checkVariant().isOk());
  ASSERT_TRUE(binding->forceVariant(1).isOk());
  EXPECT_EQ(binding->variant(), 1u);
  ASSERT_TRUE(binding->forceVariant(std::nullopt).isOk());
  EXPECT_EQ(binding->variant(), 1u);
  EXPECT_EQ(binding->forceVariant(2).toString(),
            "INVALID_ARGUMENT: f: variant index 2 is past the 2 variants");
}

TEST(Variants, BatchInvariantLaunchesTakeOneKindOfBits) {
  // Cut for few rows, in parts for few, whole otherwise; the fallback computes
  // in another way, and an image that says nothing promises nothing.
  auto entry = makeEntry([](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::f32, {"N"})
        .code("a", {"N"})
        .bits("rows");
    auto add = [&](const char *name, const char *bits, const char *bytes) {
      builder.variant(name).stage("b", {"N"}).workspace({bytes});
      if (bits)
        builder.bits(bits);
    };
    add("whole", "split", "64");
    builder.firstVariant();
    add("parts", "split", "128");
    builder.condition({"2", "N"}, {"workers"}).firstVariant();
    add("unknown", nullptr, "128");
    builder.condition({"N"}, {"workers"}).firstVariant();
    add("cut", "cut", "256");
    builder.condition({"4", "N"}, {"workers"}).firstVariant();
  });
  const CodeSchema &code = entry->codes[0];
  auto names = [&](int64_t rows, uint64_t bytes) {
    LaunchPlan plan(*entry, code);
    EXPECT_TRUE(plan.update(*entry, code, {rows}, 8).isOk());
    return code.variants[plan.choose(bytes, 0)].name + " " +
           code.variants[plan.chooseSameBits(code, bytes, 0)].name;
  };
  EXPECT_EQ(names(1, 1024), "cut parts");
  EXPECT_EQ(names(3, 1024), "unknown parts");
  EXPECT_EQ(names(8, 1024), "unknown whole");
  EXPECT_EQ(names(9, 1024), "whole whole");
  // Too little memory never leads to other bits.
  EXPECT_EQ(names(1, 64), "whole whole");
  EXPECT_EQ(names(1, 0), "rows whole");
}

TEST(Variants, BatchInvariantLaunchesTakeVariantsForAnyBatch) {
  // Others would take "cut" or "rows"; these take what says so, by conditions
  // of their own, and the last of them where none of these holds.
  auto entry = makeEntry([](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::f32, {"N"})
        .code("a", {"N"})
        .bits("rows");
    builder.variant("other").stage("b", {"N"}).bits("other").anyBatch({});
    builder.firstVariant();
    builder.variant("halves").stage("b", {"N"}).bits("fused");
    builder.condition({"N"}, {"0"}).anyBatch({{{"N"}, {"3"}}}).firstVariant();
    builder.variant("whole").stage("b", {"N"}).bits("fused").workspace({"128"});
    builder.condition({"N"}, {"0"}).anyBatch({{{"N"}, {"1"}}});
    builder.anyBatch({{{"6"}, {"N"}}, {{"N"}, {"7"}}}).firstVariant();
    builder.variant("alike").stage("b", {"N"}).bits("fused").firstVariant();
    builder.variant("cut").stage("b", {"N"}).bits("cut");
    builder.condition({"N"}, {"2"}).firstVariant();
  });
  const CodeSchema &code = entry->codes[0];
  EXPECT_EQ(code.variants[2].conditionText, "N <= 0");
  auto name = [&](int64_t rows, uint64_t bytes, bool isLaidOut = true) {
    LaunchPlan plan(*entry, code);
    for (size_t i : {size_t{2}, size_t{3}})
      plan.setLaidOut(i, isLaidOut);
    EXPECT_TRUE(plan.update(*entry, code, {rows}, 8).isOk());
    return code.variants[plan.chooseSameBits(code, bytes, 0)].name;
  };
  EXPECT_EQ(name(1, 1024), "whole");
  EXPECT_EQ(name(2, 1024), "halves");
  EXPECT_EQ(name(5, 1024), "halves"); // nothing holds
  EXPECT_EQ(name(6, 1024), "whole");
  EXPECT_EQ(name(8, 1024), "halves");
  // Too little memory never leads to other bits, and other layouts do.
  EXPECT_EQ(name(1, 64), "halves");
  EXPECT_EQ(name(1, 1024, /*isLaidOut=*/false), "other");
}

TEST(Variants, BatchInvariantLaunchesAskForNothing) {
  // A variant of alternatives alone is not what every call can have.
  auto entry = makeEntry([](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::f32, {"N"})
        .code("a", {"N"})
        .bits("rows");
    builder.variant("some")
        .stage("b", {"N"})
        .bits("some")
        .alternative({{{"N"}, {"2"}}})
        .alternative({{{"8"}, {"N"}}})
        .firstVariant();
  });
  const CodeSchema &code = entry->codes[0];
  for (int64_t rows : {1, 4, 9}) {
    LaunchPlan plan(*entry, code);
    ASSERT_TRUE(plan.update(*entry, code, {rows}, 8).isOk());
    EXPECT_EQ(code.variants[plan.chooseSameBits(code, 1024, 0)].name, "rows")
        << rows;
  }
}

TEST(Variants, DependentLaunches) {
  auto entry = makeEntry([](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::i64, {"N"})
        .tensor("out", fb::Access::write, fb::DType::i64, {"N"})
        .code("plain", {"N"})
        .variant("early")
        .stage("early", {"N"})
        .condition({"1"}, {"dependent"})
        .condition({"N"}, {"16"})
        .firstVariant();
  });
  EXPECT_EQ(entry->codes[0].variants[0].conditionText,
            "1 <= dependent, N <= 16");
  std::vector<Argument> args = neighbours(16);
  auto made = Binding::make(entry, entry->codes[0], args.data(), 2, 1);
  ASSERT_TRUE(made.isOk()) << made.status().toString();
  Binding &binding = **made;
  EXPECT_EQ(binding.variant(), 1u);
  binding.allowDependentLaunch(true);
  EXPECT_EQ(binding.variant(), 0u);
  // It holds for what is bound later, too.
  constexpr size_t params[] = {0, 1};
  for (auto [rows, variant] : {std::pair(17, 1u), {3, 0u}, {16, 0u}}) {
    args = neighbours(rows);
    ASSERT_TRUE(binding.rebind(params, args.data(), 2).isOk());
    EXPECT_EQ(binding.variant(), variant) << rows;
  }
  binding.allowDependentLaunch(false);
  EXPECT_EQ(binding.variant(), 1u);
}

TEST(Variants, ExpectedSequences) {
  auto entry = makeEntry([](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::i64, {"N"})
        .tensor("is_prefill", fb::Access::read, fb::DType::i64, {"N"})
        .code("many", {"N"})
        .variant("few")
        .stage("few", {"N"})
        .condition({"N"}, {"4"})
        .firstVariant();
  });
  std::vector<Argument> args = neighbours(16);
  auto made = Binding::make(entry, entry->codes[0], args.data(), 2, 1);
  ASSERT_TRUE(made.isOk()) << made.status().toString();
  Binding &binding = **made;
  EXPECT_EQ(binding.variant(), 1u);
  ASSERT_TRUE(binding.expectSequences(3).isOk());
  EXPECT_EQ(binding.variant(), 0u);
  // The launch is still of all, and what is bound later keeps the choice.
  EXPECT_EQ(binding.units(), 16);
  constexpr size_t params[] = {0, 1};
  args = neighbours(40);
  ASSERT_TRUE(binding.rebind(params, args.data(), 2).isOk());
  EXPECT_EQ(binding.variant(), 0u);
  EXPECT_EQ(binding.units(), 40);
  ASSERT_TRUE(binding.expectSequences(5).isOk());
  EXPECT_EQ(binding.variant(), 1u);
  args = neighbours(2);
  ASSERT_TRUE(binding.rebind(params, args.data(), 2).isOk());
  EXPECT_EQ(binding.variant(), 1u);
  ASSERT_TRUE(binding.expectSequences(0).isOk());
  EXPECT_EQ(binding.variant(), 0u);
  EXPECT_EQ(binding.expectSequences(-1).toString(),
            "INVALID_ARGUMENT: sequences: expected at least 0, got -1");
}

TEST(Variants, OneStage) {
  auto binding = bindNeighbours(16, 2);
  ASSERT_TRUE(binding->setWorkspace(address(0x1000), 192).isOk());
  const int64_t units = binding->units();
  const int64_t first = binding->stageUnits(0), second = binding->stageUnits(1);
  EXPECT_GT(first, 0);
  EXPECT_GT(second, 0);
  binding->forceStage(1);
  EXPECT_EQ(binding->stageUnits(0), 0);
  EXPECT_EQ(binding->stageUnits(1), second);
  binding->forceStage(std::nullopt);
  EXPECT_EQ(binding->stageUnits(0), first);
  EXPECT_EQ(binding->units(), units);
}

TEST(Variants, BatchInvariantBindings) {
  auto binding = bindNeighbours(16, 2);
  ASSERT_TRUE(binding->setWorkspace(address(0x1000), 192).isOk());
  EXPECT_EQ(binding->variant(), 0u);
  binding->setBatchInvariant(true);
  EXPECT_EQ(binding->variant(), 1u);
  EXPECT_EQ(*binding->workspaceBytes(), 0u);
  ASSERT_TRUE(binding->forceVariant(0).isOk());
  EXPECT_EQ(binding->variant(), 0u);
  ASSERT_TRUE(binding->forceVariant(std::nullopt).isOk());
  EXPECT_EQ(binding->variant(), 1u);
  binding->setBatchInvariant(false);
  EXPECT_EQ(binding->variant(), 0u);
}

TEST(Variants, WorkspaceMustBeUsable) {
  auto binding = bindNeighbours(16, 2);
  auto message = [&](uintptr_t data, uint64_t bytes) {
    return binding->setWorkspace(address(data), bytes).toString();
  };
  EXPECT_EQ(message(0, 64), "INVALID_ARGUMENT: workspace: expected data, got a "
                            "null pointer");
  EXPECT_EQ(message(0x1010, 64),
            "INVALID_ARGUMENT: workspace: expected data aligned to 64 bytes, "
            "got an address 16 past a multiple");
  EXPECT_EQ(message(0xfffc0, 65),
            "INVALID_ARGUMENT: workspace: the memory overlaps that of x");
  EXPECT_EQ(message(0x200040, 64),
            "INVALID_ARGUMENT: workspace: the memory overlaps that of out");
  EXPECT_EQ(message(0x1000, UINT64_MAX),
            "INVALID_ARGUMENT: workspace: 18446744073709551615 bytes do not "
            "fit in memory");
  EXPECT_EQ(message(0x1000, uint64_t{1} << 40),
            "INVALID_ARGUMENT: workspace: the memory overlaps that of x");
  ASSERT_EQ(message(0xfffc0, 64), "OK");
  // An argument that moves into the workspace is refused, and nothing changes.
  const size_t first = 0;
  std::vector<Argument> args = neighbours(16);
  args[0].data = address(0xfffc8);
  EXPECT_EQ(binding->rebind(&first, args.data(), 1).toString(),
            "INVALID_ARGUMENT: workspace: the memory overlaps that of x");
  EXPECT_EQ(binding->words()[0], 0x100000);
}

TEST(Variants, StagesRunOneAfterAnother) {
  Bytes bytes = testImage().build();
  auto image = *Image::loadMemory(bytes.data(), bytes.size());
  size_t index = *image->findEntry("neighbours");
  for (int workers : {1, 2}) {
    auto device = *createCpuDevice(workers);
    auto code = device->load(*image, index);
    ASSERT_TRUE(code.isOk()) << code.status().toString();
    for (int64_t rows : {1, 15, 16, 1000}) {
      std::vector<int64_t> x(rows), want(rows), out(rows, -1);
      for (int64_t i = 0; i < rows; ++i)
        x[i] = i * i;
      for (int64_t i = 0; i < rows; ++i)
        want[i] = x[i] + x[(i + 1) % rows] + 5;
      std::vector<Array> arrays = {Array(x.data(), DType::i64, {rows}),
                                   Array(out.data(), DType::i64, {rows})};
      std::vector<Argument> args = toArguments(arrays);
      auto bound = Binding::make(image->entries()[index], (*code)->schema(),
                                 args.data(), 2, workers);
      ASSERT_TRUE(bound.isOk()) << bound.status().toString();
      Binding &binding = **bound;
      ASSERT_TRUE(binding.forceVariant(0).isOk());
      EXPECT_FALSE((*code)->launch(binding, nullptr).isOk());
      EXPECT_EQ(out, std::vector<int64_t>(out.size(), -1)); // nothing ran
      uint64_t size = *binding.workspaceBytes();
      AlignedBytes workspace = allocateAligned(size);
      for (int launch = 0; launch < 5; ++launch) {
        std::memset(workspace.get(), 0xff, size);
        std::fill(out.begin(), out.end(), -1);
        ASSERT_TRUE(binding.setWorkspace(workspace.get(), size).isOk());
        ASSERT_TRUE((*code)->launch(binding, nullptr).isOk());
        EXPECT_EQ(out, want);
      }
      ASSERT_TRUE(binding.forceVariant(1).isOk());
      std::fill(out.begin(), out.end(), -1);
      ASSERT_TRUE((*code)->launch(binding, nullptr).isOk());
      EXPECT_EQ(out, want);
    }
  }
}
