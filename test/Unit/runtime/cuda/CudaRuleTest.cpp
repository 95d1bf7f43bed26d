// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule alone on a CUDA device. With debug checks slots are read when what
// the stream writes to them is there. Memory is taken for the best variant.

#include "../arrays.h"
#include "cuda_test.h"
#include "gdn-c/rule.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

class CudaRule : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    fakeCuda().parameterBytes = numWords() * sizeof(int64_t);
    const Bytes bytes = makeImage().build();
    device = makeHandle(hasDebugChecks());
    ASSERT_EQ(
        gdnrt_image_load_memory(bytes.data(), bytes.size(), &image, &error),
        GDNRT_OK)
        << error.message;
    ASSERT_EQ(gdnrt_rule_create(device, image, &rule, &error), GDNRT_OK)
        << error.message;
    ASSERT_EQ(gdnrt_device_allocate(device, sizeof(Ids), &slots, &error),
              GDNRT_OK);
  }
  void TearDown() override {
    EXPECT_EQ(gdnrt_device_free(device, slots, &error), GDNRT_OK);
    gdnrt_rule_destroy(rule);
    gdnrt_device_destroy(device);
    gdnrt_image_destroy(image);
    CudaTest::TearDown();
  }

  virtual ImageBuilder makeImage() const { return slotsImage("decode"); }
  virtual size_t numWords() const { return kSlotsWords; }
  virtual bool hasDebugChecks() const { return true; }

  using Ids = int32_t[2];

  /// Runs the rule on `stream`, with slots that have `before` in memory and
  /// `after` as soon as somebody waits for that stream.
  std::string run(const Ids &before, const Ids &after) {
    fakeCuda().finish = nullptr;
    EXPECT_EQ(gdnrt_device_write(device, slots, before, sizeof(Ids), &error),
              GDNRT_OK);
    fakeCuda().finish = [&](cuda::Stream waited) {
      if (static_cast<void *>(waited) == &stream)
        std::memcpy(slots, after, sizeof(Ids));
    };
    return run();
  }
  std::string run() {
    fakeCuda().launches.clear();
    fakeCuda().calls.clear();
    Array slotArray(slots, DType::i32, {2});
    Array pool(address(uintptr_t{1} << 44), DType::f32, {8});
    gdnrt_rule_args args = gdnrt_rule_args_default();
    args.slots = slotArray;
    args.state_pool = pool;
    if (gdnrt_rule_run(rule, &args, &stream, &error) != GDNRT_OK)
      return error.message;
    return "OK";
  }

  gdnrt_error error;
  gdnrt_image *image = nullptr;
  gdnrt_device *device = nullptr;
  gdnrt_rule *rule = nullptr;
  void *slots = nullptr;
  int stream = 0;
};

/// An entry whose first variant has two blocks for each sequence and works in
/// memory; the last one has one, and needs none.
class CudaRuleMemory : public CudaRule {
protected:
  ImageBuilder makeImage() const override {
    ImageBuilder builder = slotsImage("decode");
    EntryBuilder entry(*builder.image.entries[0]);
    entry.variant("cut")
        .stage("decode_kernel", {"2*N"})
        .workspace({"1000", "N"})
        .condition({"1"}, {"N"})
        .firstVariant();
    fb::StageT &stage =
        *builder.image.entries[0]->codes[0]->variants[0]->stages[0];
    stage.launch = std::make_unique<fb::LaunchT>();
    stage.launch->threads = 128;
    return builder;
  }
  size_t numWords() const override { return kSlotsWords + 1; }
  bool hasDebugChecks() const override { return false; }

  /// The blocks of a run, and whether it took memory.
  std::pair<unsigned, int> ran() {
    EXPECT_EQ(run(), "OK");
    const auto &launches = fakeCuda().launches;
    EXPECT_EQ(launches.size(), 1u);
    return {launches.empty() ? 0 : launches[0].config.gridX,
            fakeCuda().count("cuMemAlloc")};
  }
};

} // namespace

TEST_F(CudaRule, DebugChecksWaitForTheStream) {
  EXPECT_EQ(run({3, 3}, {3, 4}), "OK");
  EXPECT_EQ(fakeCuda().launches.size(), 1u);
  EXPECT_EQ(run({3, 4}, {3, 3}), "INVALID_ARGUMENT: slots: rows 0 and 1 both "
                                 "write slot 3 of state_pool");
  EXPECT_TRUE(fakeCuda().launches.empty());
}

TEST_F(CudaRule, AStreamThatFailed) {
  fakeCuda().failures = {{"cuStreamSynchronize", 700}};
  EXPECT_EQ(run().rfind("DEVICE_ERROR: ", 0), 0u) << error.message;
  EXPECT_TRUE(fakeCuda().launches.empty());
  EXPECT_EQ(fakeCuda().count("cuMemcpyDtoHAsync"), 0);
  fakeCuda().failures.clear();
}

TEST_F(CudaRuleMemory, IsTakenOnceForTheBestVariant) {
  using Ran = std::pair<unsigned, int>;
  // None is taken in a capture.
  fakeCuda().isCapturing = true;
  EXPECT_EQ(ran(), Ran(2, 0));
  fakeCuda().isCapturing = false;
  // A device that has none runs the other variant.
  fakeCuda().failures = {{"cuMemAlloc", 2}};
  EXPECT_EQ(ran(), Ran(2, 1));
  fakeCuda().failures.clear();
  EXPECT_EQ(ran(), Ran(4, 1));
  EXPECT_EQ(ran(), Ran(4, 0));
  fakeCuda().isCapturing = true;
  EXPECT_EQ(ran(), Ran(4, 0));
  fakeCuda().isCapturing = false;
  // What the graphs kept goes with the next wait.
  destroyFakeGraphs();
  EXPECT_EQ(gdnrt_device_synchronize(device, nullptr, &error), GDNRT_OK);
}
