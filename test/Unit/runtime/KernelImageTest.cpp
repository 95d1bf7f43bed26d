// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code for a GPU in an image: what the reader gives of it, and every defect of
// launches and alignments with its whole message.

#include "gdnrt/image.h"
#include "image_builder.h"

#include <gtest/gtest.h>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// An entry with one parameter and one kernel.
ImageBuilder kernelImage() {
  ImageBuilder builder;
  EntryBuilder entry = builder.entry("zero");
  entry.tensor("x", fb::Access::write, fb::DType::f32, {"N", "128"});
  entry.code("zero_kernel", {"N"}, 0, {}, "sm_90a");
  fb::CodeT &code = *builder.image.entries[0]->codes[0];
  code.format = fb::CodeFormat::cubin;
  code.alignments = {16};
  fb::StageT &stage = *code.variants[0]->stages[0];
  stage.launch = std::make_unique<fb::LaunchT>();
  stage.launch->threads = 256;
  stage.launch->shared_bytes = 1024;
  stage.launch->cluster = 2;
  stage.launch->blocks_per_sm = 4;
  stage.launch->dependent = true;
  stage.launch->counters.push_back(
      std::make_unique<fb::LinearFormT>(entry.form("2*N")));
  stage.resources = std::make_unique<fb::ResourcesT>();
  stage.resources->registers = 40;
  stage.resources->code_bytes = 2048;
  builder.blob({1, 2, 3});
  return builder;
}

/// The only stage of a code.
fb::StageT &stageOf(fb::CodeT &code) { return *code.variants[0]->stages[0]; }

/// Loads the image after `change` was made to its code.
template <typename Change> std::string loadWithCode(Change change) {
  ImageBuilder builder = kernelImage();
  change(*builder.image.entries[0]->codes[0]);
  Bytes bytes = builder.build();
  return Image::loadMemory(bytes.data(), bytes.size()).status().toString();
}

const std::string where = "CORRUPT: image: entry zero: code 0: ";
const std::string inStage =
    "CORRUPT: image: entry zero: code 0 variant 0 stage 0: ";

} // namespace

TEST(KernelImage, LaunchAndResources) {
  Bytes bytes = kernelImage().build();
  auto image = Image::loadMemory(bytes.data(), bytes.size());
  ASSERT_TRUE(image.isOk()) << image.status().toString();
  const CodeSchema &code = (*image)->entries()[0]->codes[0];
  EXPECT_EQ(code.target, "sm_90a");
  EXPECT_EQ(code.format, CodeFormat::cubin);
  EXPECT_EQ(code.alignments, std::vector<uint32_t>{16});
  const StageSchema &stage = code.variants[0].stages[0];
  ASSERT_TRUE(stage.launch.has_value());
  EXPECT_EQ(stage.launch->threads, 256u);
  EXPECT_EQ(stage.launch->sharedBytes, 1024u);
  EXPECT_EQ(stage.launch->cluster, 2u);
  EXPECT_EQ(stage.launch->blocksPerSm, 4u);
  EXPECT_TRUE(stage.launch->dependent);
  ASSERT_EQ(stage.launch->counters.size(), 1u);
  EXPECT_EQ(stage.launch->counters[0].toString({"N"}), "2*N");
  ASSERT_TRUE(stage.resources.has_value());
  EXPECT_EQ(stage.resources->registers, 40u);
  EXPECT_EQ(stage.resources->codeBytes, 2048u);
}

TEST(KernelImage, FormatAndLaunchBelongTogether) {
  EXPECT_EQ(loadWithCode([](fb::CodeT &code) { stageOf(code).launch.reset(); }),
            inStage + "expected a launch, as it is for a GPU");
  EXPECT_EQ(loadWithCode([](fb::CodeT &code) {
              code.format = fb::CodeFormat::shared_object;
            }),
            inStage + "expected no launch of a shared object");
  EXPECT_EQ(loadWithCode([](fb::CodeT &code) {
              code.format = static_cast<fb::CodeFormat>(3);
            }),
            where + "expected format to be at most 2, got 3");
}

TEST(KernelImage, Launches) {
  EXPECT_EQ(
      loadWithCode([](fb::CodeT &code) { stageOf(code).launch->threads = 0; }),
      inStage + "expected 1 to 1024 threads, got 0");
  EXPECT_EQ(loadWithCode(
                [](fb::CodeT &code) { stageOf(code).launch->threads = 1025; }),
            inStage + "expected 1 to 1024 threads, got 1025");
  EXPECT_EQ(
      loadWithCode([](fb::CodeT &code) { stageOf(code).launch->cluster = 0; }),
      inStage + "expected clusters of 1 to 16 blocks, got 0");
  EXPECT_EQ(
      loadWithCode([](fb::CodeT &code) {
        stageOf(code).launch->shared_bytes = 1 << 25;
      }),
      inStage +
          "expected at most 16777216 bytes of shared memory, got 33554432");
  EXPECT_EQ(loadWithCode([](fb::CodeT &code) {
              stageOf(code).launch->counters[0]->symbols = {7};
            }),
            "CORRUPT: image: entry zero: code 0 variant 0 stage 0 counters 0: "
            "symbol index 7 is "
            "past the 1 symbols");
  EXPECT_EQ(loadWithCode([](fb::CodeT &code) {
              for (int i = 0; i < 8; ++i)
                stageOf(code).launch->counters.push_back(
                    std::make_unique<fb::LinearFormT>());
            }),
            where.substr(0, where.size() - 8) +
                "expected at most 8 forms in code 0 variant 0 stage 0 "
                "counters, got 9");
}

TEST(KernelImage, Alignments) {
  EXPECT_EQ(loadWithCode([](fb::CodeT &code) { code.alignments = {}; }), "OK");
  EXPECT_EQ(loadWithCode([](fb::CodeT &code) { code.alignments = {0}; }), "OK");
  EXPECT_EQ(loadWithCode([](fb::CodeT &code) { code.alignments = {16, 16}; }),
            where + "expected an alignment for each of the 1 parameters or "
                    "none, got 2");
  EXPECT_EQ(loadWithCode([](fb::CodeT &code) { code.alignments = {24}; }),
            where + "expected the alignment of x to be 0 or a power of two up "
                    "to 4096, got 24");
}
