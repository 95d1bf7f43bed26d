// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches: every unit exactly once, scratch private to its thread, results
// that do not depend on the number of workers, launches from many threads.

#include "arrays.h"
#include "gdnrt/cpu_device.h"
#include "gdnrt/worker_pool.h"
#include "test_image.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

class LaunchTest : public ::testing::TestWithParam<int> {
protected:
  void SetUp() override {
    bytes = testImage().build();
    auto loaded = Image::loadMemory(bytes.data(), bytes.size());
    ASSERT_TRUE(loaded.isOk()) << loaded.status().toString();
    image = *loaded;
    auto created = createCpuDevice(GetParam());
    ASSERT_TRUE(created.isOk());
    device = *created;
  }
  std::unique_ptr<LoadedCode> load(const char *name) {
    auto code = device->load(*image, *image->findEntry(name));
    EXPECT_TRUE(code.isOk()) << code.status().toString();
    return std::move(*code);
  }
  std::unique_ptr<Binding> bind(const char *name, const LoadedCode &code,
                                const std::vector<Array> &arrays) {
    std::vector<Argument> args = toArguments(arrays);
    auto bound = Binding::make(image->entries()[*image->findEntry(name)],
                               code.schema(), args.data(), args.size());
    EXPECT_TRUE(bound.isOk()) << bound.status().toString();
    return std::move(*bound);
  }

  Bytes bytes;
  std::shared_ptr<const Image> image;
  std::shared_ptr<Device> device;
};

} // namespace

INSTANTIATE_TEST_SUITE_P(Workers, LaunchTest, ::testing::Values(1, 2));

TEST_P(LaunchTest, EveryUnitOnce) {
  auto code = load("count");
  for (int64_t rows : {0, 1, 2, 3, 7, 64, 1000, 4097}) {
    std::vector<int64_t> counts(static_cast<size_t>(rows));
    void *data = rows ? counts.data() : nullptr;
    auto binding = bind("count", *code, {Array(data, DType::i64, {rows})});
    for (int launch = 1; launch <= 3; ++launch) {
      ASSERT_TRUE(code->launch(*binding, nullptr).isOk());
      EXPECT_EQ(counts, std::vector<int64_t>(counts.size(), launch));
    }
  }
}

TEST_P(LaunchTest, AccumulateStridedAndSkipped) {
  auto code = load("accumulate");
  // Rows: slot 2, null slot, negative, past the end, slot 1.
  std::vector<float> x(5 * 6), pool(4 * 5, 1), out(5 * 3, -1);
  std::iota(x.begin(), x.end(), 0.f);
  float scale = 2;
  std::vector<int32_t> slots = {2, 0, -1, 4, 1};
  auto binding = bind("accumulate", *code,
                      {Array(x.data(), DType::f32, {5, 3}, {6, 2}),
                       Array(&scale, DType::f32, {3}, {0}),
                       Array(slots.data(), DType::i32, {5}),
                       Array(pool.data(), DType::f32, {4, 3}, {5, 1}, 0),
                       Array(out.data(), DType::f32, {5, 3})});
  ASSERT_TRUE(code->launch(*binding, nullptr).isOk());
  EXPECT_EQ(out, (std::vector<float>{2, 6, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 50,
                                     54, 58}));
  EXPECT_EQ(pool, (std::vector<float>{1, 1, 1, 1, 1, 25, 27, 29, 1, 1,
                                      1, 3, 5, 1, 1, 1,  1,  1,  1, 1}));
}

// Kernels run without subnormal numbers; the caller's arithmetic keeps them.
TEST_P(LaunchTest, SubnormalsAreZeroInKernelsOnly) {
  auto code = load("accumulate");
  std::vector<float> x = {1e-40f, 1e-30f}, pool = {9, 9, 0, 0}, out(2, -1);
  std::vector<float> scale = {1, 1e-10f};
  int32_t slot = 1;
  auto binding =
      bind("accumulate", *code,
           {Array(x.data(), DType::f32, {1, 2}),
            Array(scale.data(), DType::f32, {2}), Array(&slot, DType::i32, {1}),
            Array(pool.data(), DType::f32, {2, 2}, {2, 1}, 0),
            Array(out.data(), DType::f32, {1, 2})});
  ASSERT_TRUE(code->launch(*binding, nullptr).isOk());
  EXPECT_EQ(pool, (std::vector<float>{9, 9, 0, 1e-30f}));
  EXPECT_EQ(out, (std::vector<float>{0, 0}));
  volatile float small = 1e-30f, factor = 1e-10f;
  EXPECT_GT(small * factor, 0);
}

TEST_P(LaunchTest, ScratchIsPrivateAndAligned) {
  auto code = load("scratch_owner");
  std::vector<int64_t> out(2000);
  auto binding =
      bind("scratch_owner", *code, {Array(out.data(), DType::i64, {2000})});
  ASSERT_TRUE(code->launch(*binding, nullptr).isOk());
  EXPECT_EQ(out, std::vector<int64_t>(2000, 1));
}

TEST_P(LaunchTest, ManyThreadsLaunchOneKernel) {
  auto code = load("scratch_owner");
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      std::vector<int64_t> out(300);
      auto binding =
          bind("scratch_owner", *code, {Array(out.data(), DType::i64, {300})});
      for (int launch = 0; launch < 20; ++launch) {
        std::fill(out.begin(), out.end(), 0);
        bool ok = code->launch(*binding, nullptr).isOk();
        failures += !ok || out != std::vector<int64_t>(300, 1);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
}

TEST_P(LaunchTest, ManyThreadsLoadAndLaunch) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        auto code = load("count");
        std::vector<int64_t> counts(50);
        auto binding =
            bind("count", *code, {Array(counts.data(), DType::i64, {50})});
        EXPECT_TRUE(code->launch(*binding, nullptr).isOk());
        EXPECT_EQ(counts, std::vector<int64_t>(50, 1));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(WorkerPool, OneWorkerMeansTheCaller) {
  WorkerPool pool(1);
  auto body = [](void *context, int64_t begin, int64_t end, int worker) {
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
    EXPECT_EQ(worker, 0);
    *static_cast<std::thread::id *>(context) = std::this_thread::get_id();
  };
  std::thread::id runner;
  pool.run(100, body, &runner);
  EXPECT_EQ(runner, std::this_thread::get_id());
}
