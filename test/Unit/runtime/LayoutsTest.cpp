// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variants for arrays that lie well: which calls take them, what becomes of a
// call that is forced to, and what an image may not say of them.

#include "arrays.h"
#include "gdnrt/binding.h"
#include "gdnrt/image.h"
#include "schemas.h"
#include "test_image.h"

#include <gtest/gtest.h>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// x [N, C] with rows at multiples of 16 bytes, y [N, C, 3] with channels side
/// by side.
void addLaidOut(EntryBuilder builder) {
  builder.tensor("x", fb::Access::read, fb::DType::bf16, {"N", "C"})
      .tensor("y", fb::Access::read_write, fb::DType::f32, {"N", "C", "3"})
      .code("any", {"N"})
      .bits("rows")
      .variant("aligned")
      .stage("aligned", {"N"})
      .layout(16, {0, 1})
      .layout(16, {0, 1, 0})
      .bits("rows")
      .firstVariant();
}

struct Call {
  uintptr_t x = 0x10000, y = 0x20000;
  std::vector<int64_t> xSizes = {4, 8}, xStrides = {8, 1};
  std::vector<int64_t> ySizes = {4, 8, 3}, yStrides = {24, 1, 8};

  std::vector<Argument> arguments() const {
    Argument first, second;
    first.data = address(x);
    first.dtype = static_cast<int32_t>(DType::bf16);
    first.rank = 2;
    first.sizes = xSizes.data();
    first.strides = xStrides.data();
    second.data = address(y);
    second.dtype = static_cast<int32_t>(DType::f32);
    second.rank = 3;
    second.sizes = ySizes.data();
    second.strides = yStrides.data();
    return {first, second};
  }
};

std::unique_ptr<Binding> bind(const Call &call) {
  auto entry = makeEntry(addLaidOut);
  std::vector<Argument> args = call.arguments();
  auto bound = Binding::make(entry, entry->codes[0], args.data(), 2, 1);
  EXPECT_TRUE(bound.isOk()) << bound.status().toString();
  return std::move(*bound);
}

/// What a launch takes, and what is said of a call that is forced to take the
/// variant for aligned arrays.
std::string forced(const Call &call) {
  auto binding = bind(call);
  EXPECT_TRUE(binding->checkVariant().isOk());
  size_t chosen = binding->variant();
  EXPECT_TRUE(binding->forceVariant(0).isOk());
  EXPECT_EQ(chosen, binding->checkVariant().isOk() ? 0u : 1u);
  return binding->checkVariant().toString();
}

} // namespace

TEST(Layouts, OfACall) {
  EXPECT_EQ(forced({}), "OK");
  Call call;
  call.x += 8;
  EXPECT_EQ(forced(call), "INVALID_ARGUMENT: f, variant aligned: x: expected "
                          "data aligned to 16 bytes, got an address 8 past a "
                          "multiple");
  call = {};
  call.xStrides = {12, 1};
  EXPECT_EQ(forced(call), "INVALID_ARGUMENT: f, variant aligned: x: expected "
                          "the stride of dim 0 to be a multiple of 16 bytes, "
                          "got 24");
  call = {};
  call.xStrides = {16, 2};
  EXPECT_EQ(forced(call), "INVALID_ARGUMENT: f, variant aligned: x: expected "
                          "stride 1 in dim 1, got 2");
  call = {};
  call.yStrides = {24, 3, 1};
  EXPECT_EQ(forced(call), "INVALID_ARGUMENT: f, variant aligned: y: expected "
                          "stride 1 in dim 1, got 3");
  call = {};
  call.yStrides = {27, 1, 9};
  EXPECT_EQ(forced(call), "INVALID_ARGUMENT: f, variant aligned: y: expected "
                          "the stride of dim 0 to be a multiple of 16 bytes, "
                          "got 108");
}

TEST(Layouts, OfDimensionsThatSayNothing) {
  // One element has no stride, and none has no address.
  Call call;
  call.xSizes = {1, 8};
  call.ySizes = {1, 8, 3};
  call.xStrides = {3, 1};
  call.yStrides = {5, 1, 8};
  EXPECT_EQ(forced(call), "OK");
  call = {};
  call.xSizes = {0, 8};
  call.ySizes = {0, 8, 3};
  call.x = call.y = 0;
  EXPECT_EQ(forced(call), "OK");
}

TEST(Layouts, ChangeWithTheArguments) {
  auto binding = bind({});
  EXPECT_EQ(binding->variant(), 0u);
  constexpr size_t params[] = {0, 1};
  Call odd;
  odd.x += 2;
  for (const Call &call : {odd, Call(), odd}) {
    std::vector<Argument> args = call.arguments();
    ASSERT_TRUE(binding->rebind(params, args.data(), 2).isOk());
    EXPECT_EQ(binding->variant(), call.x == Call().x ? 0u : 1u);
    // What a workspace changes does not depend on it.
    ASSERT_TRUE(binding->setWorkspace(address(0x1000), 64).isOk());
    EXPECT_EQ(binding->variant(), call.x == Call().x ? 0u : 1u);
  }
  // The bits are those of any call.
  const Call even;
  std::vector<Argument> args = even.arguments();
  ASSERT_TRUE(binding->rebind(params, args.data(), 2).isOk());
  binding->setBatchInvariant(true);
  EXPECT_EQ(binding->variant(), 0u);
}

TEST(Layouts, AsText) {
  auto entry = makeEntry(addLaidOut);
  EXPECT_EQ(entry->codes[0].variants[0].conditionText,
            "x strides [?, 1] by 16 bytes, y strides [?, 1, ?] by 16 bytes");
}

TEST(Layouts, CorruptImages) {
  auto load = [](auto change) {
    ImageBuilder builder;
    addLaidOut(builder.entry("e"));
    builder.blob({1});
    change(builder.image.entries[0]->codes[0]->variants);
    Bytes bytes = builder.build();
    return Image::loadMemory(bytes.data(), bytes.size()).status().toString();
  };
  const std::string where = "CORRUPT: image: entry e: code 0";
  EXPECT_EQ(load([](auto &) {}), "OK");
  EXPECT_EQ(load([](auto &variants) { variants[0]->layouts.pop_back(); }),
            where + " variant 0: expected a layout for each of the 2 "
                    "parameters or none, got 1");
  EXPECT_EQ(
      load([](auto &variants) { variants[0]->layouts[0]->alignment = 24; }),
      where + " variant 0: expected the alignment of x to be 0 or a "
              "power of two up to 4096, got 24");
  EXPECT_EQ(
      load([](auto &variants) { variants[0]->layouts[1]->strides.pop_back(); }),
      where + " variant 0: expected a stride for each of the 3 "
              "dimensions of y or none, got 2");
  EXPECT_EQ(
      load([](auto &variants) { variants[0]->layouts[1]->strides[2] = -1; }),
      where + " variant 0: expected the strides of y to be at least 0, "
              "got -1");
  EXPECT_EQ(load([](auto &variants) { variants.pop_back(); }),
            where + ": expected its last variant, aligned, to have no "
                    "conditions, no layouts and no workspace");
}
