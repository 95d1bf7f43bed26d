// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory in which launches of a layer's kernel work, by their stream.

#include "arrays.h"
#include "gdnrt/image.h"
#include "gdnrt/layer_workspaces.h"
#include "gdnrt/null_device.h"
#include "test_image.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// A kernel with two counters for each element.
Bytes countingImage() {
  ImageBuilder builder;
  EntryBuilder entry = builder.entry("work");
  entry.tensor("x", fb::Access::read, fb::DType::f32, {"N"});
  entry.code("work", {"N"}, 0, {}, "sm_90a");
  fb::CodeT &code = *builder.image.entries[0]->codes[0];
  code.format = fb::CodeFormat::cubin;
  fb::StageT &stage = *code.variants[0]->stages[0];
  stage.launch = std::make_unique<fb::LaunchT>();
  stage.launch->threads = 32;
  stage.launch->counters.push_back(
      std::make_unique<fb::LinearFormT>(entry.form("2*N")));
  builder.blob({1});
  return builder.build();
}

class LayerWorkspacesTest : public ::testing::Test {
protected:
  void SetUp() override {
    const Bytes bytes = countingImage();
    auto image = Image::loadMemory(bytes.data(), bytes.size());
    ASSERT_TRUE(image.isOk()) << image.status().toString();
    auto entry = (*image)->entries()[0];
    Argument x;
    x.data = data;
    x.dtype = static_cast<int32_t>(DType::f32);
    x.rank = 1;
    x.sizes = &rows;
    auto made = Binding::make(entry, entry->codes[0], &x, 1);
    ASSERT_TRUE(made.isOk()) << made.status().toString();
    binding = std::move(*made);
  }
  /// The workspace of a launch on stream `number`.
  void *on(int number, bool capturing = false) {
    Status s =
        workspaces.give(*device, *binding, {streams + number, capturing});
    EXPECT_TRUE(s.isOk()) << s.toString();
    return binding->workspace();
  }
  void *takeOn(int number) {
    Status s = workspaces.take(device, *binding, streams + number);
    EXPECT_TRUE(s.isOk()) << s.toString();
    return binding->workspace();
  }
  std::shared_ptr<const Workspace> make() {
    gdnrt_workspace_size size = gdnrt_workspace_size_default();
    size.total_bytes = 4096;
    auto made = Workspace::make(device, size);
    EXPECT_TRUE(made.isOk()) << made.status().toString();
    return *made;
  }

  float data[4] = {};
  int64_t rows = 4;
  char streams[4] = {};
  std::shared_ptr<Device> device = createNullDevice();
  LayerWorkspaces workspaces;
  std::unique_ptr<Binding> binding;
};

} // namespace

TEST_F(LayerWorkspacesTest, EachStreamTakesItsOwn) {
  EXPECT_EQ(on(0), nullptr);
  void *first = takeOn(0);
  EXPECT_EQ(on(0), first);
  EXPECT_EQ(on(1), nullptr);
  void *second = takeOn(1);
  EXPECT_NE(second, first);
  EXPECT_EQ(on(0), first);
  EXPECT_EQ(on(1), second);
  // A larger one replaces that of its stream alone.
  void *third = takeOn(1);
  EXPECT_EQ(on(0), first);
  EXPECT_EQ(on(1), third);
}

TEST_F(LayerWorkspacesTest, ACaptureUsesThatOfTheStepAhead) {
  EXPECT_EQ(on(2, /*capturing=*/true), nullptr);
  void *own = takeOn(0);
  EXPECT_EQ(on(2, /*capturing=*/true), own);
  EXPECT_EQ(workspaces.kept({streams + 2, true}).get(), own);
}

TEST_F(LayerWorkspacesTest, WhatABindingPrefers) {
  auto prefer = [&](bool capturing) {
    Status s = workspaces.prefer(device, *binding, {streams, capturing});
    EXPECT_TRUE(s.isOk()) << s.toString();
    return binding->workspace();
  };
  EXPECT_EQ(on(0), nullptr);
  EXPECT_EQ(prefer(/*capturing=*/true), nullptr);
  void *own = prefer(/*capturing=*/false);
  EXPECT_NE(own, nullptr);
  EXPECT_GE(binding->workspaceSize(), *binding->workspaceBytes());
  // It is enough for the next ones.
  EXPECT_EQ(prefer(/*capturing=*/false), own);
  EXPECT_EQ(on(0), own);
  // Nothing is taken beside what was given.
  gdnrt_workspace_size size = gdnrt_workspace_size_default();
  size.total_bytes = 1;
  auto small = Workspace::make(device, size);
  ASSERT_TRUE(small.isOk());
  workspaces.share(*small);
  EXPECT_EQ(on(0), (*small)->data());
  EXPECT_EQ(prefer(/*capturing=*/false), (*small)->data());
}

TEST_F(LayerWorkspacesTest, SharedOnOneStreamOrOnAll) {
  auto all = make(), one = make();
  workspaces.share(all);
  EXPECT_EQ(on(0), all->data());
  workspaces.shareOn(streams + 1, one);
  EXPECT_EQ(on(0), all->data());
  EXPECT_EQ(on(1), one->data());
  EXPECT_EQ(on(1, /*capturing=*/true), one->data());
  EXPECT_EQ(workspaces.kept({streams + 1, true}), one);
  EXPECT_TRUE(workspaces.isShared({streams + 1, false}));
  workspaces.share(nullptr);
  EXPECT_EQ(on(0), nullptr);
  EXPECT_FALSE(workspaces.isShared({streams, false}));
  EXPECT_EQ(on(1), one->data());
  workspaces.shareOn(streams + 1, nullptr);
  EXPECT_EQ(on(1), nullptr);
  EXPECT_EQ(one.use_count(), 1);
}

TEST_F(LayerWorkspacesTest, CountersOfAReturnedOneAreZero) {
  auto *first = static_cast<char *>(takeOn(0));
  takeOn(1);
  const uint64_t zeros = binding->bytesToZero(4096);
  ASSERT_GT(zeros, 0u);
  std::memset(first, 1, 4096);
  EXPECT_EQ(on(0), first);
  for (uint64_t i = 0; i < zeros; ++i)
    ASSERT_EQ(first[i], 0) << i;
}
