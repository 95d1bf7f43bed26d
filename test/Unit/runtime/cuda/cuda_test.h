// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA device over the stand-in of the driver, and images for it.

#ifndef GDN_TEST_UNIT_RUNTIME_CUDA_CUDA_TEST_H
#define GDN_TEST_UNIT_RUNTIME_CUDA_CUDA_TEST_H

#include "../image_builder.h"
#include "fake_cuda.h"
#include "gdn-c/runtime.h"
#include "gdnrt/cuda_device.h"
#include "gdnrt/loaded_kernel.h"

#include <gtest/gtest.h>

#include <functional>

namespace gdnrt::test {

/// Words of the entry "scale": x (ptr, N, sN), out (ptr, N, sN), N, then the
/// workspace and the units.
constexpr size_t kScaleWords = 9;

/// An entry "scale" (x [N] f32 to out [N] f32), whose code `change` may alter.
ImageBuilder scaleImage(const std::function<void(fb::CodeT &)> &change =
                            [](fb::CodeT &) {});

/// Words of an entry with slots: slots (ptr, N, sN), state_pool (ptr, P, sP,
/// null slot), N, P, then the workspace and the units.
constexpr size_t kSlotsWords = 11;

/// An entry `name` (slots [N] i32, state_pool [P] f32, written).
ImageBuilder slotsImage(const std::string &name);

/// Adds to an entry GPU code that exports `symbol`.
fb::CodeT &addGpuCode(EntryBuilder &entry, fb::EntryT &table,
                      const std::string &symbol, const std::string &target,
                      fb::CodeFormat format, uint32_t blob);

/// The launch of the first stage of a code.
inline fb::LaunchT &launchOf(fb::CodeT &code) {
  return *code.variants[0]->stages[0]->launch;
}

class CudaTest : public ::testing::Test {
protected:
  void SetUp() override;
  void TearDown() override;

  /// A device of the stand-in; failures are test failures.
  std::shared_ptr<Device> makeDevice(int ordinal = 0);
  /// The message of creating one.
  std::string deviceMessage(int ordinal = 0);
  /// Loads the first entry; the message in `message`.
  std::unique_ptr<LoadedCode> load(const ImageBuilder &builder,
                                   std::string *message = nullptr);

  /// Entry `entry` of the image on the device; failures are test failures.
  static std::shared_ptr<LoadedKernel>
  loadKernel(const std::shared_ptr<Device> &device, const Image &image,
             size_t entry, bool debugChecks = false);

  /// A C handle of a device of the stand-in.
  gdnrt_device *makeHandle(bool debugChecks = false);
};

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_CUDA_CUDA_TEST_H
