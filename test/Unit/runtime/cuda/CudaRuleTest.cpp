// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule alone on a CUDA device, with debug checks: slots are read when what
// the stream writes to them is there.

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
    fakeCuda().parameterBytes = kSlotsWords * sizeof(int64_t);
    const Bytes bytes = slotsImage("decode").build();
    device = makeHandle(/*debugChecks=*/true);
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
