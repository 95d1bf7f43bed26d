// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of layers over the stand-in of the driver: which of them may begin
// before the kernel ahead of them has ended.

#include "../../../../runtime/src/capi/handles.h"
#include "../arrays.h"
#include "../metadata_test.h"
#include "cuda_test.h"
#include "gdnrt/gdn_layer.h"
#include "gdnrt/state_pool.h"

#include <algorithm>
#include <cstring>
#include <iterator>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// Entries decode, commit (of which only the kernel is launched here) and
/// zero_slots, whose kernels wait for the launch ahead by themselves.
ImageBuilder layerImage() {
  ImageBuilder builder;
  for (const char *name : {"decode", "zero_slots"}) {
    EntryBuilder entry = builder.entry(name);
    entry.tensor("slots", fb::Access::read, fb::DType::i32, {"N"})
        .pool("state_pool", fb::DType::f32, {"P"});
    if (name == std::string("decode"))
      entry.tensor("core", fb::Access::write, fb::DType::f32, {"N"});
    builder.blob({1});
    launchOf(addGpuCode(entry, *builder.image.entries.back(), name, "sm_90a",
                        fb::CodeFormat::cubin, 0))
        .dependent = true;
  }
  return builder;
}

class CudaLayer : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    fakeCuda().parameterBytesOf = {{"decode", 14 * sizeof(int64_t)},
                                   {"zero_slots", 11 * sizeof(int64_t)}};
    device = makeDevice();
    bytes = layerImage().build();
    auto loaded = Image::loadMemory(bytes.data(), bytes.size());
    ASSERT_TRUE(loaded.isOk()) << loaded.status().toString();
    image = std::move(*loaded);
    builder = makeBuilder(options(0));
    step = build(*builder, {{5, 7}, {1, 1}, {}, {}});
  }
  void TearDown() override {
    layers.clear();
    device.reset();
    CudaTest::TearDown();
  }
  std::shared_ptr<LoadedKernel> kernel(size_t entry) {
    return loadKernel(device, *image, entry, debugChecks);
  }
  GDNLayer &makeLayer() {
    Array pool(states, DType::f32, {64});
    const gdnrt_named_arg fixed = {"state_pool", pool};
    auto made = GDNLayer::make(kernel(0), nullptr, nullptr, nullptr, &fixed, 1);
    EXPECT_TRUE(made.isOk()) << made.status().toString();
    layers.push_back(std::move(*made));
    return *layers.back();
  }
  /// Runs a step; whether its launch may begin early.
  bool overlaps(GDNLayer &layer, void *stream = nullptr) {
    fakeCuda().launches.clear();
    Array core(outputs, DType::f32, {2});
    const gdnrt_named_arg tokens = {"core", core};
    Status s = layer.forward(&step, arena, &tokens, 1, stream);
    EXPECT_TRUE(s.isOk()) << s.toString();
    EXPECT_EQ(fakeCuda().launches.size(), 1u);
    return !fakeCuda().launches.empty() &&
           !fakeCuda().launches.front().attributes.empty();
  }

  alignas(64) char arena[65536];
  float states[64] = {}, outputs[2] = {};
  bool debugChecks = false;
  std::shared_ptr<Device> device;
  Bytes bytes;
  std::shared_ptr<const Image> image;
  std::unique_ptr<MetadataBuilder> builder;
  GDNMetadata step = {};
  std::vector<std::unique_ptr<GDNLayer>> layers;
};

} // namespace

TEST_F(CudaLayer, OverlapsByDefault) {
  GDNLayer &layer = makeLayer();
  EXPECT_TRUE(overlaps(layer));
  layer.allowDependentLaunch(false);
  EXPECT_FALSE(overlaps(layer));
  layer.allowDependentLaunch(true);
  EXPECT_TRUE(overlaps(layer));
}

TEST_F(CudaLayer, OneLaunchWaitsBehindAPoolWrite) {
  GDNLayer &first = makeLayer(), &second = makeLayer();
  EXPECT_TRUE(overlaps(first));
  device->notePoolWrite();
  EXPECT_FALSE(overlaps(first));
  EXPECT_TRUE(overlaps(first));
  // Behind that launch, on the same stream.
  EXPECT_TRUE(overlaps(second));
  int other[2] = {};
  EXPECT_FALSE(overlaps(second, &other[0]));
  EXPECT_TRUE(overlaps(first, &other[0]));
}

TEST_F(CudaLayer, AnOrderThatIsForgottenWaits) {
  GDNLayer &first = makeLayer(), &second = makeLayer();
  device->notePoolWrite();
  alignas(16) static char streams[100][16];
  for (auto &stream : streams)
    EXPECT_FALSE(overlaps(first, stream));
  EXPECT_TRUE(overlaps(second, streams[99]));
  EXPECT_FALSE(overlaps(second, streams[0]));
}

TEST_F(CudaLayer, PoolsNoteWhatTheyWrite) {
  GDNLayer &layer = makeLayer();
  StatePoolShape shape;
  shape.numLayers = shape.keyHeads = shape.valueHeads = 1;
  shape.numRequests = 3;
  shape.keyDim = shape.valueDim = 4;
  auto pool = StatePool::make(device, shape, {});
  ASSERT_TRUE(pool.isOk()) << pool.status().toString();
  int32_t slots[2] = {};
  ASSERT_TRUE(*(*pool)->allocate(SlotKind::request, 1, slots, false, nullptr));
  EXPECT_TRUE(overlaps(layer)); // nothing was written
  ASSERT_TRUE((*pool)->reset(slots, 1, nullptr).isOk());
  EXPECT_FALSE(overlaps(layer));
  ASSERT_TRUE(*(*pool)->fork(slots[0], &slots[1], nullptr));
  EXPECT_FALSE(overlaps(layer));
  EXPECT_TRUE(overlaps(layer));
}

TEST_F(CudaLayer, EntriesThatMoveStates) {
  EXPECT_FALSE(image->entries()[0]->movesStates());
  EXPECT_TRUE(image->entries()[1]->movesStates());
}

TEST_F(CudaLayer, GraphsAreOrderedOnTheirOwn) {
  GDNLayer &layer = makeLayer();
  alignas(16) char stream[16];
  device->notePoolWrite();
  fakeCuda().isCapturing = true;
  EXPECT_FALSE(overlaps(layer, stream));
  EXPECT_TRUE(overlaps(layer, stream));
  // What was recorded has not run: the next eager launch is the first one
  // behind the write.
  fakeCuda().isCapturing = false;
  destroyFakeGraphs();
  EXPECT_FALSE(overlaps(layer, stream));
  EXPECT_TRUE(overlaps(layer, stream));
}

TEST_F(CudaLayer, RowsOfPaddingAreOneCall) {
  GDNLayer &layer = makeLayer();
  for (int64_t stride : {1, 3, -3, -1}) {
    float rows[100];
    std::fill(std::begin(rows), std::end(rows), 7.0F);
    float *first = stride < 0 ? rows + 90 : rows;
    Array core(first, DType::f32, {30}, {stride});
    const gdnrt_named_arg tokens = {"core", core};
    fakeCuda().calls.clear();
    Status s = layer.forward(&step, arena, &tokens, 1, nullptr);
    ASSERT_TRUE(s.isOk()) << s.toString();
    EXPECT_EQ(fakeCuda().count("cuMemsetD8Async") +
                  fakeCuda().count("cuMemsetD2D8Async"),
              1);
    int64_t zeros = std::count(std::begin(rows), std::end(rows), 0.0F);
    EXPECT_EQ(zeros, 28); // behind the two tokens of the step
    for (int64_t row = 2; row < 30; ++row)
      EXPECT_EQ(first[row * stride], 0) << row;
  }
}

TEST_F(CudaLayer, CallsOfAStep) {
  GDNLayer &layer = makeLayer();
  alignas(16) char stream[16];
  EXPECT_TRUE(overlaps(layer, stream)); // binds
  // As in an engine, whose context is current.
  setFakeCurrentContext(fakeCuda().launches.front().context);
  fakeCuda().calls.clear();
  ASSERT_TRUE(
      device->upload(arena, step.arena, step.device_bytes, stream).isOk());
  EXPECT_TRUE(overlaps(layer, stream));
  std::vector<std::string> others;
  for (const std::string &call : fakeCuda().calls)
    if (call != "cuCtxGetCurrent" && call != "cuLaunchKernelEx")
      others.push_back(call); // the context is a variable of the thread
  EXPECT_EQ(others, (std::vector<std::string>{"cuStreamIsCapturing",
                                              "cuMemcpyHtoDAsync",
                                              "cuStreamIsCapturing"}));
  EXPECT_EQ(fakeCuda().count("cuCtxGetCurrent"), 3);
}

TEST_F(CudaLayer, UploadsWhatHasChanged) {
  gdnrt_device handle;
  handle.device = device;
  alignas(16) char streams[2][16];
  alignas(64) static char other[65536];
  gdnrt_error error = {};
  auto copies = [&](void *to, void *stream) {
    fakeCuda().calls.clear();
    step.struct_size = sizeof(step);
    EXPECT_EQ(gdnrt_metadata_upload_changed(&handle, &step, to, stream, &error),
              GDNRT_OK)
        << error.message;
    return fakeCuda().count("cuMemcpyHtoDAsync");
  };
  EXPECT_EQ(copies(arena, streams[0]), 1);
  EXPECT_EQ(copies(arena, streams[0]), 0);
  EXPECT_EQ(copies(arena, streams[1]), 1);
  EXPECT_EQ(copies(other, streams[1]), 1);
  EXPECT_EQ(copies(other, streams[1]), 0);
  step = build(*builder, {{5, 7}, {1, 1}, {}, {}});
  EXPECT_EQ(copies(other, streams[1]), 0);
  step = build(*builder, {{5, 7, 3}, {1, 1, 1}, {}, {}});
  EXPECT_EQ(copies(other, streams[1]), 1);
  EXPECT_EQ(std::memcmp(other, step.arena, step.device_bytes), 0);
  // A step that is refused may have written the arrays; the next one counts.
  step = build(*builder, {{5, 7}, {1, 1}, {}, {}});
  EXPECT_EQ(copies(other, streams[1]), 1);
  EXPECT_EQ(std::memcmp(other, step.arena, step.device_bytes), 0);
  // Without the builder's memory, as from a caller of an older header.
  step.uploaded = nullptr;
  EXPECT_EQ(copies(other, streams[1]), 1);
  EXPECT_EQ(copies(other, streams[1]), 1);
}

// The second sequence of a row reads what the launch before writes.
TEST_F(CudaLayer, ASecondSequenceOfARowWaits) {
  GDNLayer &first = makeLayer(), &second = makeLayer();
  gdnrt_run runs[2] = {step.runs[0], step.runs[0]};
  runs[0].num_rows = runs[0].num_tokens = 1;
  runs[1].num_rows = runs[1].num_tokens = 1;
  runs[1].first_row = runs[1].first_token = 1;
  step.runs = runs;
  step.num_runs = 2;
  const int32_t rows[] = {0, 0};
  for (bool isOne : {false, true})
    for (GDNLayer *layer : {&first, &second, &first}) {
      step.non_spec_rows = {isOne ? rows : nullptr, isOne ? 2 : 0};
      fakeCuda().launches.clear();
      Array core(outputs, DType::f32, {2});
      const gdnrt_named_arg tokens = {"core", core};
      Status s = layer->forward(&step, arena, &tokens, 1, nullptr);
      ASSERT_TRUE(s.isOk()) << s.toString();
      ASSERT_EQ(fakeCuda().launches.size(), 2u);
      EXPECT_FALSE(fakeCuda().launches[0].attributes.empty());
      EXPECT_EQ(fakeCuda().launches[1].attributes.empty(), isOne);
    }
}

TEST_F(CudaLayer, DebugChecksWait) {
  debugChecks = true;
  GDNLayer &layer = makeLayer();
  std::memcpy(arena, step.arena, std::min(sizeof(arena), step.device_bytes));
  EXPECT_FALSE(overlaps(layer));
}
