// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Maps of boxes: what the driver is asked to make of arguments and regions, and
// when; where launches have them.

#include "../arrays.h"
#include "cuda_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// x [T, H, 128] with boxes of 64 tokens, an optional y [T, 64], and a region
/// [N, T, 2, 64] with boxes of 16 in its third dimension, which a variant has
/// that goes before.
ImageBuilder boxImage() {
  ImageBuilder builder;
  EntryBuilder entry = builder.entry("copy");
  entry.tensor("x", fb::Access::read, fb::DType::bf16, {"T", "H", "128"})
      .tensor("y", fb::Access::read, fb::DType::f16, {"T", "64"})
      .optional()
      .tensor("out", fb::Access::write, fb::DType::f32, {"N"});
  builder.blob({1});
  fb::EntryT &table = *builder.image.entries[0];
  fb::CodeT &code = addGpuCode(entry, table, "rows_kernel", "sm_90a",
                               fb::CodeFormat::cubin, 0);
  auto addTensorMap = [](fb::StageT &stage, int param,
                         uint32_t rows) -> fb::TensorMapT & {
    auto box = std::make_unique<fb::TensorMapT>();
    box->param = param;
    box->rows = rows;
    stage.launch->tensor_maps.push_back(std::move(box));
    return *stage.launch->tensor_maps.back();
  };
  addTensorMap(*code.variants[0]->stages[0], 0, 64);
  addTensorMap(*code.variants[0]->stages[0], 1, 8);
  entry.variant("split")
      .stage("first_kernel", {"N"})
      .stage("second_kernel", {"N"});
  entry.workspace({"64"}).workspace({"N", "T", "256"});
  for (auto &stage : code.variants[1]->stages) {
    stage->launch = std::make_unique<fb::LaunchT>();
    stage->launch->threads = 64;
  }
  fb::TensorMapT &box = addTensorMap(*code.variants[1]->stages[1], -1, 16);
  box.region = 1;
  box.rows_dim = 2;
  for (const char *size : {"N", "T", "2", "64"})
    box.sizes.push_back(std::make_unique<fb::LinearFormT>(entry.form(size)));
  entry.firstVariant();
  return builder;
}

/// Words of a binding of that entry and those behind: x 7, y 5, out 3, symbols
/// 3, regions 2, extra 2. Maps begin at the next multiple of 8.
constexpr size_t kWords = 22, kFirstMap = 24;

class CudaTensorMap : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    Bytes bytes = boxImage().build();
    auto loaded = Image::loadMemory(bytes.data(), bytes.size());
    ASSERT_TRUE(loaded.isOk()) << loaded.status().toString();
    image = *loaded;
    fakeCuda().parameterBytesOf = {{"rows_kernel", (kFirstMap + 32) * 8},
                                   {"first_kernel", kWords * 8},
                                   {"second_kernel", (kFirstMap + 16) * 8}};
  }
  void TearDown() override {
    binding.reset();
    code.reset();
    CudaTest::TearDown();
  }

  std::string load(const char *driver = GDNRT_FAKE_CUDA) {
    CudaOptions options;
    options.driver = driver;
    auto device = createCudaDevice(options);
    EXPECT_TRUE(device.isOk()) << device.status().toString();
    auto loaded = (*device)->load(*image, 0);
    if (loaded.isOk())
      code = std::move(*loaded);
    return loaded.status().toString();
  }
  std::string bind(const std::vector<Array> &arrays) {
    std::vector<Argument> args = toArguments(arrays);
    auto bound = Binding::make(image->entries()[0], code->schema(), args.data(),
                               args.size(), 132, code->tensorMapEncoder());
    if (bound.isOk())
      binding = std::move(*bound);
    return bound.status().toString();
  }
  std::string rebind(size_t param, const Array &array) {
    Argument argument = array;
    return binding->rebind(&param, &argument, 1).toString();
  }
  std::string launch() {
    fakeCuda().launches.clear();
    fakeCuda().calls.clear();
    return code->launch(*binding, nullptr).toString();
  }
  const FakeMap &lastMap() { return fakeCuda().maps.back(); }

  const Array x{address(0x10000), DType::bf16, {100, 4, 128}, {1024, 160, 1}};
  const Array y{address(0x90000), DType::f16, {100, 64}};
  const Array none{nullptr, DType::f16, {}};
  const Array out{address(uintptr_t{1} << 44), DType::f32, {3}};

  alignas(64) uint8_t memory[1 << 17];
  std::shared_ptr<const Image> image;
  std::unique_ptr<LoadedCode> code;
  std::unique_ptr<Binding> binding;
};

using Sizes = std::vector<uint64_t>;
using Box = std::vector<uint32_t>;

} // namespace

TEST_F(CudaTensorMap, WhatTheDriverIsAsked) {
  ASSERT_EQ(load(), "OK");
  ASSERT_EQ(bind({x, y, out}), "OK");
  ASSERT_EQ(fakeCuda().maps.size(), 2u);
  const FakeMap &first = fakeCuda().maps[0], &second = fakeCuda().maps[1];
  EXPECT_EQ(first.address, 0x10000u);
  EXPECT_EQ(first.sizes, (Sizes{64, 100, 2, 4}));
  EXPECT_EQ(first.strides, (Sizes{2048, 128, 320}));
  EXPECT_EQ(first.box, (Box{64, 64, 2, 1}));
  EXPECT_EQ(first.elementStrides, (Box{1, 1, 1, 1}));
  EXPECT_EQ(first.type, 1);
  EXPECT_EQ(first.interleave, 0);
  EXPECT_EQ(first.swizzle, 3);
  EXPECT_EQ(first.promotion, 3);
  EXPECT_EQ(first.fill, 0);
  EXPECT_NE(first.context, nullptr);
  EXPECT_EQ(fakeCurrentContext(), nullptr);
  EXPECT_EQ(second.address, 0x90000u);
  EXPECT_EQ(second.sizes, (Sizes{64, 100, 1}));
  EXPECT_EQ(second.strides, (Sizes{128, 128}));
  EXPECT_EQ(second.box, (Box{64, 8, 1}));
}

TEST_F(CudaTensorMap, PiecesOfColumns) {
  ImageBuilder builder = boxImage();
  for (auto &variant : builder.image.entries[0]->codes[0]->variants)
    for (auto &stage : variant->stages)
      if (stage->launch->tensor_maps.size() == 2)
        stage->launch->tensor_maps[0]->pieces = 1;
  Bytes bytes = builder.build();
  auto loaded = Image::loadMemory(bytes.data(), bytes.size());
  ASSERT_TRUE(loaded.isOk()) << loaded.status().toString();
  image = *loaded;
  ASSERT_EQ(load(), "OK");
  ASSERT_EQ(bind({x, none, out}), "OK");
  EXPECT_EQ(lastMap().sizes, (Sizes{64, 100, 2, 4}));
  EXPECT_EQ(lastMap().box, (Box{64, 64, 1, 1}));
}

TEST_F(CudaTensorMap, WhereLaunchesHaveThem) {
  ASSERT_EQ(load(), "OK");
  ASSERT_EQ(bind({x, y, out}), "OK");
  ASSERT_EQ(launch(), "OK");
  // Not one call more than without.
  EXPECT_EQ(fakeCuda().calls,
            (std::vector<std::string>{"cuCtxGetCurrent", "cuCtxPushCurrent",
                                      "cuLaunchKernelEx", "cuCtxPopCurrent"}));
  std::vector<int64_t> words = fakeCuda().launches[0].words;
  ASSERT_EQ(words.size(), kFirstMap + 32);
  EXPECT_EQ(words[kWords - 1], 3);
  EXPECT_EQ(words[kWords], 0);
  EXPECT_EQ(words[kWords + 1], 0);
  EXPECT_EQ(words[kFirstMap], 1);
  EXPECT_EQ(words[kFirstMap + 16], 2);

  // The variant that goes before needs a workspace.
  ASSERT_EQ(binding->setWorkspace(memory, sizeof(memory)).toString(), "OK");
  ASSERT_EQ(fakeCuda().maps.size(), 3u);
  EXPECT_EQ(lastMap().address, reinterpret_cast<uintptr_t>(memory) + 64);
  EXPECT_EQ(lastMap().sizes, (Sizes{64, 2, 1, 100, 3}));
  EXPECT_EQ(lastMap().strides, (Sizes{128, 128, 256, 25600}));
  EXPECT_EQ(lastMap().box, (Box{64, 16, 1, 1, 1}));
  ASSERT_EQ(launch(), "OK");
  ASSERT_EQ(fakeCuda().launches.size(), 2u);
  EXPECT_EQ(fakeCuda().launches[0].words.size(), kWords);
  words = fakeCuda().launches[1].words;
  ASSERT_EQ(words.size(), kFirstMap + 16);
  EXPECT_EQ(words[kWords - 1], 3);
  EXPECT_EQ(words[kFirstMap], 3);
}

TEST_F(CudaTensorMap, WhenTheyAreMade) {
  ASSERT_EQ(load(), "OK");
  ASSERT_EQ(bind({x, y, out}), "OK");
  EXPECT_EQ(rebind(0, {address(0x20000), DType::bf16, {100, 4, 128}}), "OK");
  ASSERT_EQ(fakeCuda().maps.size(), 4u);
  EXPECT_EQ(fakeCuda().maps[2].address, 0x20000u);
  EXPECT_EQ(fakeCuda().maps[2].strides, (Sizes{1024, 128, 256}));
  ASSERT_EQ(launch(), "OK");
  EXPECT_EQ(fakeCuda().launches[0].words[kFirstMap], 3);
  EXPECT_EQ(fakeCuda().maps.size(), 4u);
  // A forced variant without its workspace has none, and is not launched.
  EXPECT_EQ(binding->forceVariant(0).toString(), "OK");
  EXPECT_EQ(fakeCuda().maps.size(), 4u);
  EXPECT_EQ(launch(), "INVALID_ARGUMENT: copy: expected a workspace of at "
                      "least 76864 bytes for the variant split, got 0");
  EXPECT_EQ(binding->forceVariant(std::nullopt).toString(), "OK");
  EXPECT_EQ(fakeCuda().maps.size(), 6u);
  EXPECT_EQ(binding->setWorkspace(memory, sizeof(memory)).toString(), "OK");
  EXPECT_EQ(binding->setWorkspace(nullptr, 0).toString(), "OK");
  EXPECT_EQ(fakeCuda().maps.size(), 9u);
}

TEST_F(CudaTensorMap, NothingToCopy) {
  ASSERT_EQ(load(), "OK");
  ASSERT_EQ(bind({x, none, out}), "OK");
  EXPECT_EQ(fakeCuda().maps.size(), 1u);
  ASSERT_EQ(launch(), "OK");
  EXPECT_EQ(fakeCuda().launches[0].words[kFirstMap], 1);
  EXPECT_EQ(fakeCuda().launches[0].words[kFirstMap + 16], 0);
  ASSERT_EQ(bind({{nullptr, DType::bf16, {0, 4, 128}}, none, out}), "OK");
  EXPECT_EQ(fakeCuda().maps.size(), 1u);
}

TEST_F(CudaTensorMap, LayoutsThatHaveNoMap) {
  ASSERT_EQ(load(), "OK");
  ASSERT_EQ(bind({x, none, out}), "OK");
  const std::string refused = "INVALID_ARGUMENT: x: expected ";
  EXPECT_EQ(rebind(0, {address(0x10008), DType::bf16, {100, 4, 128}}),
            refused + "data aligned to 16 bytes where boxes are copied, got an "
                      "address 8 past a multiple");
  EXPECT_EQ(
      rebind(0, {address(0x10000), DType::bf16, {100, 4, 128}, {1024, 132, 1}}),
      refused + "the stride of dim 1 to be a multiple of 16 bytes where "
                "boxes are copied, got 264");
  EXPECT_EQ(
      rebind(0,
             {address(0x100000), DType::bf16, {100, 4, 128}, {-1024, 128, 1}}),
      refused + "the stride of dim 0 to be from 0 to less than "
                "549755813888 where boxes are copied, got -1024");
  EXPECT_EQ(rebind(0, {address(0x10000),
                       DType::bf16,
                       {2, 4, 128},
                       {int64_t{1} << 39, 128, 1}}),
            refused + "the stride of dim 0 to be from 0 to less than "
                      "549755813888 where boxes are copied, got 549755813888");
  EXPECT_EQ(rebind(0, {address(0x10000),
                       DType::bf16,
                       {100, 2, 128},
                       {256, int64_t{1} << 39, 1}}),
            refused + "the stride of dim 1 to be from 0 to less than "
                      "549755813888 where boxes are copied, got 549755813888");
  EXPECT_EQ(
      rebind(0, {address(0x10000), DType::bf16, {100, 4, 128}, {2048, 512, 4}}),
      refused + "stride 1 in dim 2 where boxes are copied, got 4");
  EXPECT_EQ(rebind(0, {address(0x10000),
                       DType::bf16,
                       {100, (int64_t{1} << 31) + 1, 128},
                       {128, 0, 1}}),
            refused + "dim 1 to be at most 2147483648 where boxes are copied, "
                      "got 2147483649");
  // The strides of a dimension of size 1 say nothing.
  EXPECT_EQ(
      rebind(0, {address(0x10000), DType::bf16, {100, 1, 128}, {128, 3, 1}}),
      "OK");
  EXPECT_EQ(lastMap().strides, (Sizes{256, 128, 128}));
}

TEST_F(CudaTensorMap, FailuresOfTheDriver) {
  ASSERT_EQ(load(), "OK");
  ASSERT_EQ(bind({x, none, out}), "OK");
  const std::string why = ": cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE "
                          "(1): invalid argument";
  fakeCuda().failures = {{"cuTensorMapEncodeTiled", 1}};
  EXPECT_EQ(rebind(0, {address(0x20000), DType::bf16, {100, 4, 128}}),
            "DEVICE_ERROR: copy: x, 100 x 4 x 128 with strides 512, 128, 1" +
                why);
  EXPECT_EQ(binding->setWorkspace(memory, sizeof(memory)).toString(),
            "DEVICE_ERROR: copy: region 1 of the workspace, 3 x 100 x 2 x 64 "
            "with strides 12800, 128, 64, 1" +
                why);
  // The binding is what it was.
  ASSERT_EQ(launch(), "OK");
  EXPECT_EQ(fakeCuda().launches[0].words[0], 0x10000);
  EXPECT_EQ(fakeCuda().launches[0].words[kFirstMap], 1);
  EXPECT_EQ(binding->workspace(), nullptr);
  // What cannot fail leaves it to the launch.
  EXPECT_EQ(binding->forceVariant(1).toString(), "OK");
  EXPECT_EQ(launch(),
            "DEVICE_ERROR: copy: x, 100 x 4 x 128 with strides 1024, 160, 1" +
                why);
  EXPECT_TRUE(fakeCuda().launches.empty());
  fakeCuda().failures.clear();
  EXPECT_EQ(binding->forceVariant(std::nullopt).toString(), "OK");
  EXPECT_EQ(launch(), "OK");
}

TEST_F(CudaTensorMap, WhatKernelsTake) {
  fakeCuda().parameterBytesOf["second_kernel"] = kWords * 8;
  EXPECT_EQ(load(), "CORRUPT: copy: second_kernel: expected 320 bytes of "
                    "parameters, and the kernel takes 176");
}

TEST_F(CudaTensorMap, DriversWithoutMaps) {
  EXPECT_EQ(load(GDNRT_MAPLESS_FAKE_CUDA),
            "UNSUPPORTED: copy: expected a driver that makes "
            "tensor maps; this one lacks cuTensorMapEncodeTiled");
}
