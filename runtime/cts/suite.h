// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all cases share: the image under test, devices, and the run of a
// problem through the C ABI. A case is a gtest that runs once per entry
// (decode, prefill, verify, copy_slots, zero_slots) and number of workers; an
// entry that the image lacks is skipped.

#ifndef GDNRT_CTS_SUITE_H
#define GDNRT_CTS_SUITE_H

#include "problem.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>

namespace gdnrt::cts {

/// From the command line.
struct SuiteOptions {
  std::string image;
  /// "cpu", "cuda" or "cuda:1".
  std::string device = "cpu";
  std::string decode = "decode";
  std::string prefill = "prefill";
  std::string verify = "verify";
  std::string commit = "commit";
  std::string copy = "copy_slots";
  std::string zero = "zero_slots";
  /// The variant to force in entries that have it; "": the device chooses.
  std::string variant;
  /// Whether windows of convolutions have the channels of a position side by
  /// side, as variants for aligned arrays ask, or the positions of a channel.
  bool byPosition = false;
};
extern SuiteOptions suiteOptions;

/// The number of the GPU under test, and whether the device has graphs.
int ordinal();
bool hasGraphs();

/// A new device of the kind under test, with debug checks; a failure ends the
/// program.
gdnrt_device *makeDevice(int workers);

enum class EntryKind { decode, prefill, verify, commit, copy, zero };

/// An entry of the image on a device of its own.
class Kernel {
public:
  /// `debugChecks` false is for graphs, which launches with checks refuse.
  Kernel(EntryKind kind, int workers, bool debugChecks = true);
  /// Another entry of the image on the device of `other`, which outlives it.
  Kernel(EntryKind kind, const Kernel &other);
  ~Kernel();
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;

  /// False if the image has no such entry, or no code of it for the device;
  /// then `refusal` says which.
  bool exists() const { return kernel_ != nullptr; }
  const std::string &refusal() const { return refusal_; }
  const gdnrt_entry *entry() const { return gdnrt_kernel_entry(kernel_); }

  /// Binds and launches; a refusal is a test failure. Arguments of a GPU are
  /// copies in its memory, with every byte of the padding. The workspace holds
  /// NaN before the launch.
  void run(const Problem &problem) const;

  /// The same with pools of `first` more slots, before all that the problem
  /// has: slot s is slot `first + s` there, and what lies before has no
  /// meaning. All ids have to be live. Returns an empty string, or why the
  /// device has no memory for that.
  std::string runBehind(const Problem &problem, int64_t first) const;
  /// Calls `body` with the arguments in memory of the device, and reads them
  /// back when it is done.
  void onDevice(const Problem &problem,
                const std::function<void(const std::vector<gdnrt_named_arg> &)>
                    &body) const;
  /// Takes what the device has in the arrays of `onDevice` now.
  void readBack(const Problem &problem,
                const std::vector<gdnrt_named_arg> &onDevice) const;
  /// Destroys the kernel: from here on only what needs the device alone goes.
  void destroy() {
    gdnrt_kernel_destroy(kernel_);
    kernel_ = nullptr;
  }
  /// Whether launches are batch invariant; see the C ABI.
  void setBatchInvariant(bool wanted) { batchInvariant_ = wanted; }
  /// Gives the binding memory of the device that holds NaN, as much as it asks
  /// for, after it was told of the suite's options. Freed by the caller; null
  /// if none is needed.
  void *giveWorkspace(gdnrt_binding *binding) const;
  gdnrt_kernel *handle() const { return kernel_; }
  gdnrt_device *device() const { return device_; }

private:
  void load(EntryKind kind);
  void launch(const std::vector<gdnrt_named_arg> &args) const;

  gdnrt_image *image_ = nullptr;
  gdnrt_device *device_ = nullptr;
  gdnrt_kernel *kernel_ = nullptr;
  bool isOwner_ = true, batchInvariant_ = false;
  std::string refusal_;
};

class EntryTest : public ::testing::TestWithParam<std::tuple<EntryKind, int>> {
protected:
  explicit EntryTest(bool debugChecks = true)
      : kernel(std::get<0>(GetParam()), std::get<1>(GetParam()), debugChecks) {}
  void SetUp() override {
    if (!kernel.exists())
      GTEST_SKIP() << kernel.refusal();
    if (suiteOptions.device != "cpu" && std::get<1>(GetParam()) != 1)
      GTEST_SKIP() << "the number of workers is that of a CPU";
  }
  Kernel kernel;
};

/// Names parameters: "decode1", "prefill2".
std::string
nameOf(const ::testing::TestParamInfo<std::tuple<EntryKind, int>> &info);

/// Every row of the outputs is exactly zero.
void expectZeroRow(const Problem &problem, int64_t row);
/// The elements are equal bit for bit, whatever the layouts.
void expectSameOutputs(const Problem &a, const Problem &b);
void expectSamePools(const Problem &a, const Problem &b);
/// The root of the mean square of the differences, by that of `want`, is at
/// most `limit`, for outputs and pools.
void expectNear(const Problem &got, const Problem &want, double limit);
/// Outputs and pools kept their padding.
void expectPaddingIntact(const Problem &problem);

} // namespace gdnrt::cts

/// Instantiates a suite for each entry and number of workers.
#define GDNRT_CTS_ENTRIES(SUITE)                                               \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Cts, SUITE,                                                              \
      ::testing::Combine(                                                      \
          ::testing::Values(EntryKind::decode, EntryKind::prefill),            \
          ::testing::Values(1, 2)),                                            \
      nameOf)

/// The same for prefill alone.
#define GDNRT_CTS_PREFILL(SUITE)                                               \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Cts, SUITE,                                                              \
      ::testing::Combine(::testing::Values(EntryKind::prefill),                \
                         ::testing::Values(1, 2)),                             \
      nameOf)

/// The same for verify alone.
#define GDNRT_CTS_VERIFY(SUITE)                                                \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Cts, SUITE,                                                              \
      ::testing::Combine(::testing::Values(EntryKind::verify),                 \
                         ::testing::Values(1, 2)),                             \
      nameOf)

/// The same for copy_slots or zero_slots alone.
#define GDNRT_CTS_MOVES(SUITE, KIND)                                           \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Cts, SUITE,                                                              \
      ::testing::Combine(::testing::Values(EntryKind::KIND),                   \
                         ::testing::Values(1, 2)),                             \
      nameOf)

#endif // GDNRT_CTS_SUITE_H
