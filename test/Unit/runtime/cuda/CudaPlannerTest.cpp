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

/// The entries of an image of `states`: slots or lazy.
EntryBuilder addEntry(ImageBuilder &builder, const char *name, int32_t states) {
  EntryBuilder entry = builder.entry(name);
  const std::string is = name;
  const bool isLazy = states == GDNRT_VERIFY_LAZY;
  if (is == "plan") {
    entry.tensor("query_start_loc", kRead, kIds, {"N + 1"})
        .tensor("seq_lens", kRead, kIds, {"N"})
        .tensor("block_table", kRead, kIds, {"N", "B"})
        .tensor("num_drafts", kRead, kIds, {"N"})
        .tensor("num_accepted", kRead, kIds, {"N"})
        .tensor("limits", kRead, kFlags, {"T", "S"})
        .tensor("is_prefill", kWrite, kFlags, {"N"})
        .tensor("verify_cu_seqlens", kWrite, kIds, {"N + 1"})
        .tensor("verify_accepted", kWrite, kIds, {"N"})
        .tensor("prefill_cu_seqlens", kWrite, kIds, {"N + 1"})
        .tensor("prefill_slots", kWrite, kIds, {"N"})
        .tensor("prefill_write_slots", kWrite, kIds, {"N"})
        .tensor("prefill_has_initial", kWrite, kFlags, {"N"})
        .tensor("prefill_taken", kWrite, kFlags, {"N"});
    if (isLazy)
      entry.tensor("verify_slots", kWrite, kIds, {"N"})
          .tensor("commit_slots", kWrite, kIds, {"N"})
          .tensor("commit_accepted", kWrite, kIds, {"N"});
    return entry;
  }
  const bool isPrefill = is == "prefill", isCommit = is == "commit";
  if (!isCommit)
    entry.tensor("is_prefill", kRead, kFlags, {"N"})
        .tensor("cu_seqlens", kRead, kIds, {"N + 1"});
  if (isPrefill || isLazy)
    entry.tensor("slots", kRead, kIds, {"N"});
  else
    entry.tensor("token_slots", kRead, kIds, {"N", "S"});
  if (!isPrefill)
    entry.tensor("num_accepted", kRead, kIds, {"N"});
  if (isPrefill)
    entry.tensor("write_slots", kRead, kIds, {"N"})
        .tensor("has_initial", kRead, kFlags, {"N"});
  entry.pool("state_pool", fb::DType::f32, {"P"});
  if (isLazy && !isPrefill)
    entry.pool("pending_keys", fb::DType::f32, {"P"});
  if (!isCommit)
    entry.tensor("core", kWrite, fb::DType::f32, {"T"});
  return entry;
}

class CudaPlanner : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    load(GDNRT_VERIFY_SLOTS);
  }
  void load(int32_t states) {
    layer.reset();
    planner.reset();
    device = makeDevice();
    ImageBuilder builder;
    std::vector<const char *> names = {"plan", "verify", "prefill"};
    if (states == GDNRT_VERIFY_LAZY)
      names.push_back("commit");
    for (const char *name : names) {
      EntryBuilder entry = addEntry(builder, name, states);
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
    options.verify_states = states;
    auto made = BatchPlanner::make(kernel(0), options);
    ASSERT_TRUE(made.isOk()) << made.status().toString();
    planner = std::move(*made);
    Array pool(pools, DType::f32, {32}), keys(pools + 32, DType::f32, {32});
    const gdnrt_named_arg fixed[] = {{"state_pool", pool},
                                     {"pending_keys", keys}};
    const bool isLazy = names.size() == 4;
    auto layers =
        GDNLayer::make(nullptr, kernel(2), kernel(1),
                       isLazy ? kernel(3) : nullptr, fixed, isLazy ? 2 : 1);
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
  float pools[64] = {}, outputs[8] = {};
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
  // The plan reads what the engine's kernel ahead may write, the first launch
  // of the first layer what the plan writes. Those behind begin behind that
  // one.
  std::vector<bool> waits;
  for (const auto &launch : fakeCuda().launches)
    waits.push_back(launch.attributes.empty());
  EXPECT_EQ(waits, (std::vector<bool>{true, true, false, false, false}));
}

TEST_F(CudaPlanner, ACommitIsLaunchedAheadOfVerify) {
  load(GDNRT_VERIFY_LAZY);
  alignas(16) char stream[16];
  step(4, stream); // binds
  setFakeCurrentContext(fakeCuda().launches.front().context);
  fakeCuda().calls.clear();
  fakeCuda().launches.clear();
  step(4, stream, /*layers=*/1);
  std::vector<std::string> kernels;
  for (const auto &launch : fakeCuda().launches)
    kernels.push_back(launch.kernel);
  EXPECT_EQ(kernels,
            (std::vector<std::string>{"plan", "commit", "verify", "prefill"}));
  for (const std::string &call : fakeCuda().calls)
    EXPECT_TRUE(call == "cuCtxGetCurrent" || call == "cuStreamIsCapturing" ||
                call == "cuLaunchKernelEx")
        << call;
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
