// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps whose arrays are on the device, over the stand-in of the driver: what
// the driver is asked for, and which launches wait.

#include "../arrays.h"
#include "cuda_test.h"
#include "gdnrt/batch_planner.h"
#include "gdnrt/gdn_layer.h"

#include <array>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

constexpr fb::Access kRead = fb::Access::read, kWrite = fb::Access::write;
constexpr fb::DType kIds = fb::DType::i32, kFlags = fb::DType::i1;

EntryBuilder addEntry(ImageBuilder &builder, const char *name) {
  EntryBuilder entry = builder.entry(name);
  const std::string is = name;
  if (is == "plan") {
    entry.tensor("query_start_loc", kRead, kIds, {"N + 1"})
        .tensor("seq_lens", kRead, kIds, {"N"})
        .tensor("block_table", kRead, kIds, {"N", "B"})
        .tensor("num_drafts", kRead, kIds, {"N"})
        .tensor("num_accepted", kRead, kIds, {"N"})
        .tensor("is_prefill", kWrite, kFlags, {"N"})
        .tensor("prefill_cu_seqlens", kWrite, kIds, {"N + 1"})
        .tensor("prefill_slots", kWrite, kIds, {"N"})
        .tensor("prefill_write_slots", kWrite, kIds, {"N"})
        .tensor("prefill_has_initial", kWrite, kFlags, {"N"})
        .tensor("prefill_taken", kWrite, kFlags, {"N"});
    return entry;
  }
  entry.tensor("is_prefill", kRead, kFlags, {"N"})
      .tensor("cu_seqlens", kRead, kIds, {"N + 1"});
  if (is == "verify")
    entry.tensor("token_slots", kRead, kIds, {"N", "S"})
        .tensor("num_accepted", kRead, kIds, {"N"});
  else
    entry.tensor("slots", kRead, kIds, {"N"})
        .tensor("write_slots", kRead, kIds, {"N"})
        .tensor("has_initial", kRead, kFlags, {"N"});
  entry.pool("state_pool", fb::DType::f32, {"P"})
      .tensor("core", kWrite, fb::DType::f32, {"T"});
  return entry;
}

class CudaPlanner : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    device = makeDevice();
    ImageBuilder builder;
    for (const char *name : {"plan", "verify", "prefill"}) {
      EntryBuilder entry = addEntry(builder, name);
      builder.blob({1});
      launchOf(addGpuCode(entry, *builder.image.entries.back(), name, "sm_90a",
                          fb::CodeFormat::cubin, 0))
          .dependent = true;
    }
    bytes = builder.build();
    auto loaded = Image::loadMemory(bytes.data(), bytes.size());
    ASSERT_TRUE(loaded.isOk()) << loaded.status().toString();
    image = std::move(*loaded);
    fakeCuda().parameterBytesOf.clear();
    for (const auto &entry : image->entries())
      fakeCuda().parameterBytesOf[entry->name] =
          (entry->numWords() + 2) * sizeof(int64_t);
    gdnrt_batch_planner_options options = gdnrt_batch_planner_options_default();
    options.max_num_seqs = 4;
    options.num_speculative_tokens = 1;
    auto made = BatchPlanner::make(kernel(0), options);
    ASSERT_TRUE(made.isOk()) << made.status().toString();
    planner = std::move(*made);
    Array pool(states, DType::f32, {64});
    const gdnrt_named_arg fixed = {"state_pool", pool};
    auto layers =
        GDNLayer::make(nullptr, kernel(2), kernel(1), nullptr, &fixed, 1);
    ASSERT_TRUE(layers.isOk()) << layers.status().toString();
    layer = std::move(*layers);
  }
  void TearDown() override {
    layer.reset();
    planner.reset();
    device.reset();
    CudaTest::TearDown();
  }
  std::shared_ptr<LoadedKernel> kernel(size_t entry) {
    return loadKernel(device, *image, entry);
  }
  gdnrt_device_batch batch(int64_t rows) {
    gdnrt_device_batch made = gdnrt_device_batch_default();
    made.num_seqs = rows;
    made.num_tokens = 8;
    made.max_num_prefills = 1;
    made.query_start_loc = made.seq_lens = made.block_table = ids.data();
    made.num_accepted_tokens = made.num_decode_draft_tokens = ids.data();
    made.block_table_columns = 2;
    made.block_table_stride = 3;
    return made;
  }
  /// A step of one layer or more, planned and run.
  void step(int64_t rows, void *stream, int layers = 1) {
    gdnrt_gdn_metadata metadata = {};
    Status planned = planner->plan(batch(rows), stream, metadata);
    ASSERT_TRUE(planned.isOk()) << planned.toString();
    Array core(outputs, DType::f32, {8});
    const gdnrt_named_arg tokens = {"core", core};
    for (int i = 0; i < layers; ++i) {
      Status s = layer->forward(&metadata, nullptr, &tokens, 1, stream);
      ASSERT_TRUE(s.isOk()) << s.toString();
    }
  }

  std::array<int32_t, 64> ids = {};
  float states[64] = {}, outputs[8] = {};
  std::shared_ptr<Device> device;
  Bytes bytes;
  std::shared_ptr<const Image> image;
  std::unique_ptr<BatchPlanner> planner;
  std::unique_ptr<GDNLayer> layer;
};

} // namespace

TEST_F(CudaPlanner, CallsOfAStep) {
  alignas(16) char stream[16];
  step(4, stream); // binds
  setFakeCurrentContext(fakeCuda().launches.front().context);
  for (int64_t rows : {4, 3, 1}) {
    fakeCuda().calls.clear();
    step(rows, stream);
    std::vector<std::string> calls;
    for (const std::string &call : fakeCuda().calls)
      if (call != "cuCtxGetCurrent")
        calls.push_back(call);
    // No copy, no memory, and nothing waits.
    EXPECT_EQ(calls, (std::vector<std::string>{
                         "cuStreamIsCapturing", "cuLaunchKernelEx",
                         "cuStreamIsCapturing", "cuLaunchKernelEx",
                         "cuLaunchKernelEx"}))
        << rows;
  }
}

TEST_F(CudaPlanner, TheFirstLayerBehindAPlanWaits) {
  alignas(16) char stream[16];
  step(4, stream);
  fakeCuda().launches.clear();
  step(4, stream, /*layers=*/2);
  // The plan reads what the engine's kernel ahead may write, the first layer
  // what the plan writes.
  std::vector<bool> waits;
  for (const auto &launch : fakeCuda().launches)
    waits.push_back(launch.attributes.empty());
  EXPECT_EQ(waits, (std::vector<bool>{true, true, true, false, false}));
}

TEST_F(CudaPlanner, NothingIsLaunchedForWhatIsRefused) {
  alignas(16) char stream[16];
  fakeCuda().launches.clear();
  gdnrt_gdn_metadata metadata = {};
  gdnrt_device_batch wrong = batch(4);
  wrong.block_table_columns = 1;
  EXPECT_EQ(
      planner->plan(wrong, stream, metadata).toString(),
      "INVALID_ARGUMENT: block_table: expected at least 2 columns, got 1");
  wrong = batch(5);
  EXPECT_EQ(planner->plan(wrong, stream, metadata).toString(),
            "INVALID_ARGUMENT: num_seqs: expected 0 to 4, got 5");
  wrong = batch(4);
  wrong.seq_lens = nullptr;
  EXPECT_EQ(planner->plan(wrong, stream, metadata).toString(),
            "INVALID_ARGUMENT: seq_lens: expected an array, got null");
  EXPECT_TRUE(fakeCuda().launches.empty());
  EXPECT_EQ(metadata.num_runs, 0);
}
