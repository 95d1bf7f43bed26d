// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A prefill in a graph: captured once for the most rows and tokens there can
// be, replayed with the lengths and slots that lie in memory by then. Grids and
// workspaces come from those bounds alone, so nothing waits and nothing is
// allocated; what no row has is padding.

#include "device_graph.h"
#include "suite.h"

#include <cstring>

using namespace gdnrt::cts;
using gdnrt::DeviceGraph;

namespace {

class PrefillGraphCases : public EntryTest {
protected:
  PrefillGraphCases() : EntryTest(/*debugChecks=*/false) {}
  void SetUp() override {
    if (!hasGraphs())
      GTEST_SKIP() << "the device has no graphs";
    EntryTest::SetUp();
  }

  /// Rows of these lengths, and as much padding as is left of the tokens.
  static Rows withPadding(std::vector<int64_t> lengths,
                          std::vector<int64_t> slots) {
    int64_t padding = kTokens;
    for (int64_t length : lengths)
      padding -= length;
    return {std::move(lengths), std::move(slots), padding};
  }

  static constexpr int64_t kTokens = 200;
};
GDNRT_CTS_PREFILL(PrefillGraphCases);

} // namespace

TEST_P(PrefillGraphCases, ReplaysTakeTheLengthsOfTheirTime) {
  const std::vector<Rows> batches = {
      withPadding({67, 64, 69}, {1, 2, 3}), withPadding({1, 130, 0}, {5, 1, 7}),
      withPadding({0, 0, 200}, {2, 6, 4}),  withPadding({0, 0, 0}, {1, 2, 3}),
      withPadding({63, 0, 65}, {3, 0, 1}), // the null slot in the middle
  };
  Problem graphed(kernel.entry(), batches[0]), eager = graphed;
  DeviceGraph graph(ordinal());
  gdnrt_error error;
  kernel.onDevice(graphed, [&](const auto &args) {
    gdnrt_binding *binding = nullptr;
    ASSERT_EQ(gdnrt_kernel_bind_named(kernel.handle(), args.data(), args.size(),
                                      &binding, &error),
              GDNRT_OK)
        << error.message;
    void *workspace = kernel.giveWorkspace(binding);
    graph.beginCapture();
    EXPECT_EQ(gdnrt_launch(binding, graph.stream(), &error), GDNRT_OK)
        << error.message;
    graph.endCapture();
    for (const Rows &batch : batches) {
      Problem next(kernel.entry(), batch);
      next.takePools(eager);
      // New lengths, slots and poison in outputs; states stay on the device.
      for (const gdnrt_named_arg &named : args)
        if (std::strstr(named.name, "pool") == nullptr)
          EXPECT_EQ(gdnrt_device_write(kernel.device(), named.arg.data,
                                       next[named.name].bytes().data(),
                                       next[named.name].bytes().size(), &error),
                    GDNRT_OK)
              << error.message;
      graph.replay();
      kernel.readBack(graphed, args);
      kernel.run(next);
      expectSameOutputs(graphed, next);
      expectSamePools(graphed, next);
      eager.takePools(next);
    }
    gdnrt_binding_destroy(binding);
    EXPECT_EQ(gdnrt_device_free(kernel.device(), workspace, &error), GDNRT_OK);
  });
}
